// A kernel whose author forgot extern "C".
int softmax(const float* x, float* y) {
  *y = *x;
  return 0;
}
