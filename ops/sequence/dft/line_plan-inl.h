// SPDX-License-Identifier: Apache-2.0
// Transforms of single lines, whose elements fill the lanes of vectors. Compiled once per instruction set; include it
// from a kernel file after pocketfft, whose table of twiddle factors it uses.
#if defined(POLYOP_OPS_SEQUENCE_DFT_LINE_PLAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SEQUENCE_DFT_LINE_PLAN_INL_H_
#undef POLYOP_OPS_SEQUENCE_DFT_LINE_PLAN_INL_H_
#else
#define POLYOP_OPS_SEQUENCE_DFT_LINE_PLAN_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose_square-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE void MultiplyComplex(D /*tag*/, const hn::Vec<D>& c, const hn::Vec<D>& s, hn::Vec<D>& re, hn::Vec<D>& im) {
  const auto real = hn::NegMulAdd(im, s, hn::Mul(re, c));
  im = hn::MulAdd(im, c, hn::Mul(re, s));
  re = real;
}

/// Replaces N complex numbers by their forward transform.
template <int N, class D>
HWY_INLINE void Butterfly(D d, hn::Vec<D> (&re)[N], hn::Vec<D> (&im)[N]) {
  using R = hn::TFromD<D>;
  using V = hn::Vec<D>;
  if constexpr (N == 2) {
    const V r = re[1], i = im[1];
    re[1] = hn::Sub(re[0], r);
    im[1] = hn::Sub(im[0], i);
    re[0] = hn::Add(re[0], r);
    im[0] = hn::Add(im[0], i);
  } else if constexpr (N == 3) {
    const V half = hn::Set(d, static_cast<R>(-0.5)), sine = hn::Set(d, static_cast<R>(0.86602540378443864676));
    const V sum_r = hn::Add(re[1], re[2]), sum_i = hn::Add(im[1], im[2]);
    const V s_r = hn::Mul(sine, hn::Sub(re[1], re[2])), s_i = hn::Mul(sine, hn::Sub(im[1], im[2]));
    const V m_r = hn::MulAdd(half, sum_r, re[0]), m_i = hn::MulAdd(half, sum_i, im[0]);
    re[0] = hn::Add(re[0], sum_r);
    im[0] = hn::Add(im[0], sum_i);
    re[1] = hn::Add(m_r, s_i);
    im[1] = hn::Sub(m_i, s_r);
    re[2] = hn::Sub(m_r, s_i);
    im[2] = hn::Add(m_i, s_r);
  } else if constexpr (N == 5) {
    const V c1 = hn::Set(d, static_cast<R>(0.30901699437494742410)),
            c2 = hn::Set(d, static_cast<R>(-0.80901699437494742410));
    const V s1 = hn::Set(d, static_cast<R>(0.95105651629515357212)),
            s2 = hn::Set(d, static_cast<R>(0.58778525229247312917));
    const V a_r = hn::Add(re[1], re[4]), a_i = hn::Add(im[1], im[4]), b_r = hn::Sub(re[1], re[4]),
            b_i = hn::Sub(im[1], im[4]);
    const V e_r = hn::Add(re[2], re[3]), e_i = hn::Add(im[2], im[3]), f_r = hn::Sub(re[2], re[3]),
            f_i = hn::Sub(im[2], im[3]);
    const V m_r = hn::MulAdd(c1, a_r, hn::MulAdd(c2, e_r, re[0])),
            m_i = hn::MulAdd(c1, a_i, hn::MulAdd(c2, e_i, im[0]));
    const V n_r = hn::MulAdd(c2, a_r, hn::MulAdd(c1, e_r, re[0])),
            n_i = hn::MulAdd(c2, a_i, hn::MulAdd(c1, e_i, im[0]));
    const V p_r = hn::MulAdd(s1, b_r, hn::Mul(s2, f_r)), p_i = hn::MulAdd(s1, b_i, hn::Mul(s2, f_i));
    const V q_r = hn::NegMulAdd(s1, f_r, hn::Mul(s2, b_r)), q_i = hn::NegMulAdd(s1, f_i, hn::Mul(s2, b_i));
    re[0] = hn::Add(re[0], hn::Add(a_r, e_r));
    im[0] = hn::Add(im[0], hn::Add(a_i, e_i));
    re[1] = hn::Add(m_r, p_i);
    im[1] = hn::Sub(m_i, p_r);
    re[4] = hn::Sub(m_r, p_i);
    im[4] = hn::Add(m_i, p_r);
    re[2] = hn::Add(n_r, q_i);
    im[2] = hn::Sub(n_i, q_r);
    re[3] = hn::Sub(n_r, q_i);
    im[3] = hn::Add(n_i, q_r);
  } else if constexpr (N >= 4) {
    static_assert((N & (N - 1)) == 0 && N <= 16);
    V even_r[N / 2], even_i[N / 2], odd_r[N / 2], odd_i[N / 2];
    for (int j = 0; j < N / 2; ++j) {
      even_r[j] = re[2 * j];
      even_i[j] = im[2 * j];
      odd_r[j] = re[2 * j + 1];
      odd_i[j] = im[2 * j + 1];
    }
    Butterfly<N / 2>(d, even_r, even_i);
    Butterfly<N / 2>(d, odd_r, odd_i);
    constexpr double kCosines[] = {1, 0.92387953251128675613,  0.70710678118654752440,  0.38268343236508977173,
                                   0, -0.38268343236508977173, -0.70710678118654752440, -0.92387953251128675613};
    constexpr double kSines[] = {0, 0.38268343236508977173, 0.70710678118654752440, 0.92387953251128675613,
                                 1, 0.92387953251128675613, 0.70710678118654752440, 0.38268343236508977173};
    for (int j = 0; j < N / 2; ++j) {
      V r = odd_r[j], i = odd_i[j];
      if (4 * j == N) {  // times -i
        r = odd_i[j];
        i = hn::Neg(odd_r[j]);
      } else if (j > 0) {
        const double c = kCosines[j * (16 / N)], s = kSines[j * (16 / N)];
        MultiplyComplex(d, hn::Set(d, static_cast<R>(c)), hn::Set(d, static_cast<R>(-s)), r, i);
      }
      re[j] = hn::Add(even_r[j], r);
      im[j] = hn::Add(even_i[j], i);
      re[j + N / 2] = hn::Sub(even_r[j], r);
      im[j + N / 2] = hn::Sub(even_i[j], i);
    }
  }
}

/// The transform of a line of complex numbers whose length is the number of lanes times a product of small primes. The
/// line is a matrix whose rows fill a vector: its columns are transformed in the lanes (Stockham), and then its rows.
template <class R>
class LinePlan {
 public:
  using Tag = hn::CappedTag<R, 64 / sizeof(R)>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));

  /// What the elements of the input are. The parts of swapped complex numbers are exchanged, also in the output: the
  /// result is the inverse transform.
  enum class Form { kComplex, kSwapped, kReal };

  static bool Supports(int64_t size) {
    if (kLanes < 2 || size % kLanes != 0 || size / kLanes < kLanes) return false;
    int64_t rest = size / kLanes;
    for (const int64_t factor : {2, 3, 5}) {
      while (rest % factor == 0) rest /= factor;
    }
    return rest == 1;
  }

  explicit LinePlan(size_t length) : rows_(static_cast<int64_t>(length) / kLanes) {
    int64_t n = rows_, stride = 1;
    const pocketfft::detail::sincos_2pibyn<R> circle(length);
    while (n > 1) {
      const int64_t radix = n % 4 == 0 ? 4 : n % 5 == 0 ? 5 : n % 3 == 0 ? 3 : 2;
      passes_.push_back({radix, n / radix, stride, twiddles_.size()});
      for (int64_t p = 0; p < n / radix; ++p) {
        for (int64_t j = 1; j < radix; ++j) {
          const auto w = circle[static_cast<size_t>(j * p * stride * kLanes)];
          twiddles_.push_back(w.r);
          twiddles_.push_back(-w.i);
        }
      }
      n /= radix;
      stride *= radix;
    }
    for (int64_t k = 0; k < rows_; ++k) {
      for (const bool imaginary : {false, true}) {
        for (int64_t l = 0; l < kLanes; ++l) {
          const auto w = circle[static_cast<size_t>(l * k)];
          last_.push_back(imaginary ? -w.i : w.r);
        }
      }
    }
  }

  size_t length() const { return static_cast<size_t>(rows_) * kLanes; }

  /// Returns how many numbers of aligned memory Run needs.
  int64_t Numbers() const { return 4 * rows_ * kLanes; }

  /// Requires: `from`, `to` and `memory` do not overlap.
  void Run(Form form, const R* from, R scale, R* memory, R* to) const {
    R *source = memory, *target = memory + 2 * rows_ * kLanes;
    switch (form) {
      case Form::kComplex: First<Form::kComplex>(from, source); break;
      case Form::kSwapped: First<Form::kSwapped>(from, source); break;
      case Form::kReal: First<Form::kReal>(from, source); break;
    }
    for (size_t n = 1; n < passes_.size(); ++n) {
      const Pass& pass = passes_[n];
      const auto load = [&](int64_t m, Vector& re, Vector& im) HWY_ATTR {
        re = hn::LoadU(Tag(), source + 2 * m * kLanes);
        im = hn::LoadU(Tag(), source + (2 * m + 1) * kLanes);
      };
      RunPass(pass, load, target);
      std::swap(source, target);
    }
    form == Form::kSwapped ? Last<true>(source, scale, to) : Last<false>(source, scale, to);
  }

 private:
  using Vector = hn::Vec<Tag>;
  struct Pass {
    int64_t radix, count, stride;
    size_t twiddles;
  };

  template <Form kForm>
  HWY_NOINLINE void First(const R* from, R* to) const {
    const auto load = [&](int64_t m, Vector& re, Vector& im) HWY_ATTR {
      if constexpr (kForm == Form::kReal) {
        re = hn::LoadU(Tag(), from + m * kLanes);
        im = hn::Zero(Tag());
      } else if constexpr (kForm == Form::kSwapped) {
        hn::LoadInterleaved2(Tag(), from + 2 * m * kLanes, im, re);
      } else {
        hn::LoadInterleaved2(Tag(), from + 2 * m * kLanes, re, im);
      }
    };
    RunPass(passes_[0], load, to);
  }

  template <class Load>
  HWY_INLINE void RunPass(const Pass& pass, const Load& load, R* to) const {
    switch (pass.radix) {
      case 2: return RunRadix<2>(pass, load, to);
      case 3: return RunRadix<3>(pass, load, to);
      case 4: return RunRadix<4>(pass, load, to);
      default: return RunRadix<5>(pass, load, to);
    }
  }

  template <int kRadix, class Load>
  HWY_INLINE void RunRadix(const Pass& pass, const Load& load, R* HWY_RESTRICT to) const {
    const Tag d;
    const R* factors = twiddles_.data() + pass.twiddles;
    for (int64_t p = 0; p < pass.count; ++p, factors += 2 * (kRadix - 1)) {
      for (int64_t q = 0; q < pass.stride; ++q) {
        Vector re[kRadix], im[kRadix];
        for (int j = 0; j < kRadix; ++j) load(q + pass.stride * (p + pass.count * j), re[j], im[j]);
        Butterfly<kRadix>(d, re, im);
        R* const there = to + 2 * kLanes * (q + pass.stride * kRadix * p);
        for (int j = 0; j < kRadix; ++j) {
          if (j > 0) MultiplyComplex(d, hn::Set(d, factors[2 * j - 2]), hn::Set(d, factors[2 * j - 1]), re[j], im[j]);
          hn::StoreU(re[j], d, there + 2 * kLanes * pass.stride * j);
          hn::StoreU(im[j], d, there + 2 * kLanes * pass.stride * j + kLanes);
        }
      }
    }
  }

  // Transforms the rows, of which as many as a vector has lanes are transposed at a time.
  template <bool kSwapped>
  HWY_NOINLINE void Last(const R* from, R scale, R* to) const {
    const Tag d;
    const auto factor = hn::Set(d, scale);
    for (int64_t next = 0; next < rows_; next += kLanes) {
      const int64_t k = std::min(next, rows_ - kLanes);
      Vector re[kLanes], im[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const R* const w = last_.data() + 2 * kLanes * (k + i);
        re[i] = hn::LoadU(d, from + 2 * kLanes * (k + i));
        im[i] = hn::LoadU(d, from + 2 * kLanes * (k + i) + kLanes);
        MultiplyComplex(d, hn::LoadU(d, w), hn::LoadU(d, w + kLanes), re[i], im[i]);
      }
      TransposeSquare(d, re);
      TransposeSquare(d, im);
      Butterfly<kLanes>(d, re, im);
      for (int j = 0; j < kLanes; ++j) {
        const auto x = hn::Mul(re[j], factor), y = hn::Mul(im[j], factor);
        R* const there = to + 2 * (k + rows_ * j);
        kSwapped ? hn::StoreInterleaved2(y, x, d, there) : hn::StoreInterleaved2(x, y, d, there);
      }
    }
  }

  int64_t rows_;
  std::vector<Pass> passes_;
  std::vector<R> twiddles_, last_;
};

/// The transform of a real line of even length, as one of half as many complex numbers.
template <class R>
class RealLinePlan {
 public:
  using Half = LinePlan<R>;
  using Tag = typename Half::Tag;
  static constexpr int kLanes = Half::kLanes;

  static bool Supports(int64_t size) { return size % 2 == 0 && Half::Supports(size / 2); }

  explicit RealLinePlan(size_t length) : half_(length / 2), count_(static_cast<int64_t>(length) / 2) {
    const pocketfft::detail::sincos_2pibyn<R> circle(length);
    for (int64_t k = 0; k <= count_ / 2; ++k) {
      cosines_.push_back(circle[static_cast<size_t>(k)].r);
      sines_.push_back(circle[static_cast<size_t>(k)].i);
    }
  }

  size_t length() const { return 2 * static_cast<size_t>(count_); }

  /// Returns how many numbers of aligned memory Forward and Backward need.
  int64_t Numbers() const { return half_.Numbers() + 2 * count_; }

  /// Transforms a line to the first half of its spectrum. The arguments do not overlap.
  HWY_NOINLINE void Forward(const R* from, R scale, R* memory, R* to) const {
    half_.Run(Half::Form::kComplex, from, scale, memory, to);
    const R first = to[0], second = to[1];
    Combine<false>(to, to);
    to[0] = first + second;
    to[2 * count_] = first - second;
    to[1] = to[2 * count_ + 1] = 0;
  }

  /// Transforms the first half of a spectrum to a line. The arguments do not overlap.
  HWY_NOINLINE void Backward(const R* from, R scale, R* memory, R* to) const {
    R* const packed = memory + half_.Numbers();
    Combine<true>(from, packed);
    packed[0] = from[0] + from[2 * count_];
    packed[1] = from[0] - from[2 * count_];
    half_.Run(Half::Form::kSwapped, packed, scale, memory, to);
  }

 private:
  // Computes elements 1 to count - 1 of the spectrum from the transform of pairs, or the reverse, from `from` to `to`,
  // which may be the same. E + w O and conj(E - w O), w = exp(-2 pi i k / 2 count), are elements k and count - k of the
  // spectrum, if E + i O and conj(E - i O) are those of the transform.
  template <bool kReverse>
  void Combine(const R* from, R* to) const {
    const Tag d;
    int64_t k = 1;
    for (; k + kLanes <= count_ - k - kLanes + 1; k += kLanes) {
      const int64_t other = count_ - k - kLanes + 1;
      hn::Vec<Tag> a_r, a_i, b_r, b_i;
      hn::LoadInterleaved2(d, from + 2 * k, a_r, a_i);
      hn::LoadInterleaved2(d, from + 2 * other, b_r, b_i);
      b_r = hn::Reverse(d, b_r);
      b_i = hn::Reverse(d, b_i);
      Pair<kReverse>(d, hn::LoadU(d, cosines_.data() + k), hn::LoadU(d, sines_.data() + k), a_r, a_i, b_r, b_i);
      hn::StoreInterleaved2(a_r, a_i, d, to + 2 * k);
      hn::StoreInterleaved2(hn::Reverse(d, b_r), hn::Reverse(d, b_i), d, to + 2 * other);
    }
    const hn::CappedTag<R, 1> one;
    for (; k <= count_ - k; ++k) {
      const R *const a = from + 2 * k, *const b = from + 2 * (count_ - k);
      auto a_r = hn::Set(one, a[0]), a_i = hn::Set(one, a[1]), b_r = hn::Set(one, b[0]), b_i = hn::Set(one, b[1]);
      const auto c = hn::Set(one, cosines_[static_cast<size_t>(k)]), s = hn::Set(one, sines_[static_cast<size_t>(k)]);
      Pair<kReverse>(one, c, s, a_r, a_i, b_r, b_i);
      to[2 * k] = hn::GetLane(a_r);
      to[2 * k + 1] = hn::GetLane(a_i);
      to[2 * (count_ - k)] = hn::GetLane(b_r);
      to[2 * (count_ - k) + 1] = hn::GetLane(b_i);
    }
  }

  template <bool kReverse, class D, class V>
  static HWY_INLINE void Pair(D d, const V& c, const V& s, V& a_r, V& a_i, V& b_r, V& b_i) {
    V e_r = hn::Add(a_r, b_r), e_i = hn::Sub(a_i, b_i);
    V f_r = hn::Sub(a_r, b_r), f_i = hn::Add(a_i, b_i);  // 2 i O, or 2 w O
    V p_r, p_i;
    if constexpr (kReverse) {  // i O = f (s + i c), for w = c - i s
      p_r = hn::NegMulAdd(f_i, c, hn::Neg(hn::Mul(f_r, s)));
      p_i = hn::NegMulAdd(f_i, s, hn::Mul(f_r, c));
    } else {
      const V half = hn::Set(d, static_cast<R>(0.5));
      e_r = hn::Mul(half, e_r);
      e_i = hn::Mul(half, e_i);
      f_r = hn::Mul(half, f_r);
      f_i = hn::Mul(half, f_i);
      p_r = hn::NegMulAdd(f_r, s, hn::Mul(f_i, c));
      p_i = hn::Neg(hn::MulAdd(f_i, s, hn::Mul(f_r, c)));
    }
    a_r = hn::Add(e_r, p_r);
    a_i = hn::Add(e_i, p_i);
    b_r = hn::Sub(e_r, p_r);
    b_i = hn::Sub(p_i, e_i);
  }

  Half half_;
  int64_t count_;
  std::vector<R> cosines_, sines_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
