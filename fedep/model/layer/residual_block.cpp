#include "fedep/model/layer/residual_block.h"

#include <algorithm>

#include "fedep/model/layer/elementwise.h"

namespace fedep {
namespace {

std::size_t add_tensor(const std::string& name, const ConvolutionShape& s, Layout& layout) {
  const std::size_t at = size_of(layout);
  layout.push_back(
      {name,
       {std::int64_t(s.kernel), std::int64_t(s.kernel), std::int64_t(s.in), std::int64_t(s.out)}});
  return at;
}

void add_ranges(const Convolution& conv, std::size_t at, std::vector<Range>& ranges) {
  for (const Range& range : conv.live()) ranges.push_back({at + range.begin, at + range.end});
}

}  // namespace

ResidualBlock::ResidualBlock(std::size_t height, std::size_t width, std::size_t in, std::size_t out,
                             std::size_t stride, NormKind norm, const std::string& name,
                             Layout& layout)
    : conv1_(same_convolution(height, width, in, out, 3, stride)),
      conv2_(same_convolution(conv1_.shape().out_height, conv1_.shape().out_width, out, out, 3, 1)),
      norm1_(norm, height * width, in),
      norm2_(norm, conv1_.shape().positions(), out),
      at1_(add_tensor(name + ".conv1", conv1_.shape(), layout)),
      at2_(add_tensor(name + ".conv2", conv2_.shape(), layout)) {
  if (in == out && stride == 1) return;
  shortcut_.emplace(same_convolution(height, width, in, out, 1, stride));
  shortcut_norm_.emplace(norm, shortcut_->shape().positions(), out);
  at_shortcut_ = add_tensor(name + ".shortcut", shortcut_->shape(), layout);
}

void ResidualBlock::add_live(std::vector<Range>& ranges) const {
  add_ranges(conv1_, at1_, ranges);
  add_ranges(conv2_, at2_, ranges);
  if (shortcut_) add_ranges(*shortcut_, at_shortcut_, ranges);
}

void ResidualBlock::reserve(std::size_t n) {
  const std::size_t in = n * conv1_.shape().input_size();
  const std::size_t out = n * conv2_.shape().output_size();
  for (std::vector<float>* maps : {&norm1_out_, &relu1_}) maps->resize(in);
  for (std::vector<float>* maps : {&conv1_out_, &norm2_out_, &relu2_, &out_}) maps->resize(out);
  if (shortcut_) {
    for (std::vector<float>* maps : {&shortcut_out_, &shortcut_norm_out_}) maps->resize(out);
  }
  d_.resize(std::max(in, out));
}

const float* ResidualBlock::forward(const float* theta, std::size_t n, const float* x) {
  norm1_.forward(n, x, norm1_out_.data(), relu1_.data());
  conv1_.forward(n, relu1_.data(), theta + at1_, conv1_out_.data());
  norm2_.forward(n, conv1_out_.data(), norm2_out_.data(), relu2_.data());
  conv2_.forward(n, relu2_.data(), theta + at2_, out_.data());
  const std::size_t out_size = n * conv2_.shape().output_size();
  if (shortcut_) {
    shortcut_->forward(n, x, theta + at_shortcut_, shortcut_out_.data());
    shortcut_norm_->forward(n, shortcut_out_.data(), shortcut_norm_out_.data(), nullptr);
    add_to(shortcut_norm_out_.data(), out_size, out_.data());
  } else {
    add_to(x, out_size, out_.data());
  }
  return out_.data();
}

void ResidualBlock::backward(const float* theta, std::size_t n, const float* x,
                             const GradientSink& sink, std::vector<float>& d,
                             std::vector<float>& scratch) {
  const std::size_t out_size = n * conv2_.shape().output_size();
  // The branch, from its end: scratch and d_ take turns.
  sink.convolution(conv2_, n, relu2_.data(), d.data(), at2_);
  conv2_.input_gradient(n, d.data(), theta + at2_, scratch.data());
  std::fill_n(d_.data(), out_size, 0.0f);
  norm2_.add_backward(n, norm2_out_.data(), true, scratch.data(), d_.data());
  sink.convolution(conv1_, n, relu1_.data(), d_.data(), at1_);
  conv1_.input_gradient(n, d_.data(), theta + at1_, scratch.data());
  // The shortcut leaves its share in d, and the branch's is added.
  if (shortcut_) {
    std::fill_n(d_.data(), out_size, 0.0f);
    shortcut_norm_->add_backward(n, shortcut_norm_out_.data(), false, d.data(), d_.data());
    sink.convolution(*shortcut_, n, x, d_.data(), at_shortcut_);
    shortcut_->input_gradient(n, d_.data(), theta + at_shortcut_, d.data());
  }
  norm1_.add_backward(n, norm1_out_.data(), true, scratch.data(), d.data());
}

}  // namespace fedep
