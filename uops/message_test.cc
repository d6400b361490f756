// Text in messages: every sequence of bytes comes out as UTF-8, and short.
#include "uops/message.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace nestor {
namespace {

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (int b : bytes) text.push_back(static_cast<char>(b));
  return text;
}

// The UTF-8 of a code point, by definition D92 of the Unicode standard.
std::string Encoded(int c) {
  if (c < 0x80) return Bytes({c});
  if (c < 0x800) return Bytes({0xc0 | c >> 6, 0x80 | (c & 0x3f)});
  if (c < 0x10000) return Bytes({0xe0 | c >> 12, 0x80 | (c >> 6 & 0x3f), 0x80 | (c & 0x3f)});
  return Bytes(
      {0xf0 | c >> 18, 0x80 | (c >> 12 & 0x3f), 0x80 | (c >> 6 & 0x3f), 0x80 | (c & 0x3f)});
}

TEST(Utf8, TakesEachCharacterAndNoSurrogate) {
  for (int c = 0; c < 0x120000; ++c) {
    const std::string text = Encoded(c);
    const bool valid = c < 0x110000 && (c < 0xd800 || c > 0xdfff);
    ASSERT_EQ(Utf8Length(text), valid ? text.size() : 0) << c;
    ASSERT_EQ(Utf8Length(text.substr(0, text.size() - 1)), 0u) << c;
  }
}

TEST(Utf8, TakesNoOverlongForm) {
  for (const std::string& text :
       {Bytes({0xc0, 0x80}), Bytes({0xc1, 0xbf}), Bytes({0xe0, 0x9f, 0xbf}),
        Bytes({0xf0, 0x8f, 0xbf, 0xbf}), Bytes({0x80}), Bytes({0xff}), std::string()}) {
    EXPECT_EQ(Utf8Length(text), 0u) << testing::PrintToString(text);
  }
}

TEST(Utf8, EachPairOfBytesIsMadeValid) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string valid = ValidUtf8(Bytes({'x', a, b, 'y'}));
      for (size_t at = 0; at < valid.size(); at += Utf8Length(valid.substr(at)))
        ASSERT_GT(Utf8Length(valid.substr(at)), 0u);
    }
  }
  EXPECT_EQ(ValidUtf8(Bytes({'a', 0xff, 'b', 0xc3, 0xa9})), "a\\xffb\u00e9");
}

TEST(ClipWords, CutsWordsAlone) {
  EXPECT_EQ(ClipWords(""), "");
  EXPECT_EQ(ClipWords("no word here is long, x[i_1]"), "no word here is long, x[i_1]");
  EXPECT_EQ(ClipWords("'abcdef' (abc)", 3), "'abc...' (abc)");
  const std::string most(kLongestWord, 'a');
  EXPECT_EQ(ClipWords(most), most);
  EXPECT_EQ(ClipWords(most + "a"), most + "...");
}

TEST(DidYouMean, NamesWhatIsNear) {
  const std::vector<std::string> known = {"softmax", "i"};
  EXPECT_EQ(DidYouMean("sofmax", known), ", did you mean 'softmax'?");
  EXPECT_EQ(DidYouMean("j", known), ", did you mean 'i'?");
  EXPECT_EQ(DidYouMean("i", known), "") << "a name is no correction of itself";
  EXPECT_EQ(DidYouMean("SoftMax", known), ", did you mean 'softmax'?");
  EXPECT_EQ(DidYouMean("q", {"N", "x", "softmax"}), "") << "each other letter is as near";
  EXPECT_EQ(DidYouMean("X", {"N", "x"}), ", did you mean 'x'?");
  EXPECT_EQ(DidYouMean("conv2d", known), "");
  EXPECT_EQ(DidYouMean(std::string(10000000, 'i'), known), "");
}

}  // namespace
}  // namespace nestor
