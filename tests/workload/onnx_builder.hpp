// Small ONNX models, built in the test by protobuf.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace stagecraft::test {

class OnnxBuilder {
public:
  explicit OnnxBuilder(int opset = 13) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
  }

  /// A size below 0 makes the dimension a symbol: -1 "batch", -2 "sequence".
  OnnxBuilder& input(const std::string& name, const std::vector<int>& sizes, int type = onnx::TensorProto::FLOAT) {
    onnx::ValueInfoProto& value = *graph().add_input();
    value.set_name(name);
    onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const int size : sizes) {
      onnx::TensorShapeProto::Dimension& dimension = *tensor.mutable_shape()->add_dim();
      if (size < 0) {
        dimension.set_dim_param(size == -1 ? "batch" : "sequence");
      } else {
        dimension.set_dim_value(size);
      }
    }
    return *this;
  }

  OnnxBuilder& weight(const std::string& name, const std::vector<int>& sizes) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int size : sizes) {
      tensor.add_dims(size);
    }
    return *this;
  }

  OnnxBuilder& integers(const std::string& name, const std::vector<int>& values) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int>(values.size()));
    for (const int value : values) {
      tensor.add_int64_data(value);
    }
    return *this;
  }

  OnnxBuilder& node(const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name("node_" + output);
    for (const std::string& input : inputs) {
      node.add_input(input);
    }
    node.add_output(output);
    return *this;
  }

  /// Attributes of the node added last.
  OnnxBuilder& attribute(const std::string& name, const std::vector<int>& values) {
    onnx::AttributeProto& attribute = *graph().mutable_node()->rbegin()->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const int value : values) {
      attribute.add_ints(value);
    }
    return *this;
  }

  OnnxBuilder& attribute(const std::string& name, int value) {
    onnx::AttributeProto& attribute = *graph().mutable_node()->rbegin()->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
    return *this;
  }

  /// The shape of a tensor that libonnx cannot infer.
  OnnxBuilder& shape(const std::string& name, const std::vector<int>& sizes) {
    onnx::ValueInfoProto& value = *graph().add_value_info();
    value.set_name(name);
    onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    for (const int size : sizes) {
      tensor.mutable_shape()->add_dim()->set_dim_value(size);
    }
    return *this;
  }

  /// The domain of the node added last.
  OnnxBuilder& domain(const std::string& name) {
    graph().mutable_node()->rbegin()->set_domain(name);
    if (model_.opset_import().rbegin()->domain() != name) {
      onnx::OperatorSetIdProto& set = *model_.add_opset_import();
      set.set_domain(name);
      set.set_version(1);
    }
    return *this;
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  std::string bytes() const { return model_.SerializeAsString(); }

private:
  onnx::ModelProto model_;
};

} // namespace stagecraft::test
