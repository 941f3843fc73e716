/* Kernels of `mlsim measure`: a triad over three arrays, and multiply-adds on numbers in registers. */
#include <stddef.h>

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
/* No vectors: a scalar of the type itself. */
#if defined(SCALAR)
typedef float numbers_fp32;
typedef double numbers_fp64;
#else
typedef float numbers_fp32 __attribute__((vector_size(WIDTH)));
typedef double numbers_fp64 __attribute__((vector_size(WIDTH)));
#endif

/* The memory is touched between two passes, so that none is left out. */
void triad(double *a, const double *b, const double *c, double s, size_t n, long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] + s * c[i];
        __asm__ volatile("" : : "r"(a) : "memory");
    }
}

/* Twelve chains of multiply-adds, so that none waits for another. */
#define CHAINS(TYPE)                                                                        \
    long chains_##TYPE(long rounds, volatile void *out)                                     \
    {                                                                                       \
        numbers_##TYPE m = {0}, p = {0}, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, xa, xb;    \
        m = m + 0.999f; p = p + 0.001f;                                                     \
        x0 = x1 = x2 = x3 = x4 = x5 = x6 = x7 = x8 = x9 = xa = xb = p;                      \
        for (long i = 0; i < rounds; i++) {                                                 \
            x0 = x0 * m + p; x1 = x1 * m + p; x2 = x2 * m + p; x3 = x3 * m + p;             \
            x4 = x4 * m + p; x5 = x5 * m + p; x6 = x6 * m + p; x7 = x7 * m + p;             \
            x8 = x8 * m + p; x9 = x9 * m + p; xa = xa * m + p; xb = xb * m + p;             \
        }                                                                                   \
        *(volatile numbers_##TYPE *)out = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7)) \
            + ((x8 + x9) + (xa + xb));                                                      \
        return (long)(sizeof(numbers_##TYPE) / sizeof(x0[0]));                              \
    }
#if defined(SCALAR)
#undef CHAINS
#define CHAINS(TYPE)                                                                        \
    long chains_##TYPE(long rounds, volatile void *out)                                     \
    {                                                                                       \
        numbers_##TYPE m = 0.999f, p = 0.001f;                                              \
        numbers_##TYPE x0 = p, x1 = p, x2 = p, x3 = p, x4 = p, x5 = p, x6 = p, x7 = p;      \
        numbers_##TYPE x8 = p, x9 = p, xa = p, xb = p;                                      \
        for (long i = 0; i < rounds; i++) {                                                 \
            x0 = x0 * m + p; x1 = x1 * m + p; x2 = x2 * m + p; x3 = x3 * m + p;             \
            x4 = x4 * m + p; x5 = x5 * m + p; x6 = x6 * m + p; x7 = x7 * m + p;             \
            x8 = x8 * m + p; x9 = x9 * m + p; xa = xa * m + p; xb = xb * m + p;             \
        }                                                                                   \
        *(volatile numbers_##TYPE *)out = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7             \
            + x8 + x9 + xa + xb;                                                            \
        return 1;                                                                           \
    }
#endif
CHAINS(fp32)
CHAINS(fp64)
