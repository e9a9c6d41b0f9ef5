// The report as text and as JSON, and a machine profile's file. Next: ../programs/info.cpp.
#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "../strict_json.h"
#include "accounting_report.h"

namespace tapestry {
namespace {

using Json = nlohmann::ordered_json;

/// 1234567 as "1,234,567".
std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

/// 1234567 as "1.235 M" for the steps of 1000 or 1024 between the names.
std::string scaled(double value, double step, std::initializer_list<const char*> names) {
  auto name = names.begin();
  while (value >= step && name + 1 != names.end()) value /= step, ++name;
  return fmt::format("{:.4g} {}", value, *name);
}

std::string text_of(const ReportRow& row) {
  if (const auto* text = std::get_if<std::string>(&row.value)) return *text;
  const auto* whole = std::get_if<int64_t>(&row.value);
  const double value = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(row.value);
  switch (row.unit) {
    case Unit::count:
      return grouped(*whole);
    case Unit::flops:
      return scaled(value, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
    case Unit::bytes:
      return scaled(value, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
    case Unit::seconds:
      return value < 1 ? fmt::format("{:.4g} ms", 1000 * value) : fmt::format("{:.4g} s", value);
    case Unit::none:
      break;
  }
  return whole != nullptr ? grouped(*whole) : fmt::format("{:.4g}", value);
}

Json json_of(const ReportRow& row) {
  Json value = std::visit([](const auto& v) { return Json(v); }, row.value);
  if (!row.kept) return value;
  return Json{{"value", value}, {"usual", row.note}, {"kept", *row.kept}};
}

Json json_of(const std::vector<MachineProfile::Rate>& rates) {
  Json list = Json::array();
  for (const auto& [size, rate] : rates) list.push_back({{"size", size}, {"rate", rate}});
  return list;
}

double positive(const Json& from, const char* name) {
  const auto at = from.is_object() ? from.find(name) : from.end();
  if (!from.is_object() || at == from.end() || !at->is_number() || !(at->get<double>() > 0))
    fail<FormatError>("machine profile: {} is missing or no positive number; write it with tapestry info --measure",
                      name);
  return at->get<double>();
}

std::vector<MachineProfile::Rate> rates(const Json& from, const char* name) {
  const auto list = from.find(name);
  if (list == from.end() || !list->is_array() || list->empty())
    fail<FormatError>("machine profile: {} is missing or no list; write it with tapestry info --measure", name);
  std::vector<MachineProfile::Rate> found;
  for (const Json& row : *list) {
    found.push_back({positive(row, "size"), positive(row, "rate")});
    if (found.size() > 1 && found.back().size <= found[found.size() - 2].size)
      fail<FormatError>("machine profile: the sizes of {} must grow", name);
  }
  return found;
}

}  // namespace

std::string to_text(const std::vector<ReportSection>& report) {
  std::string text;
  for (const ReportSection& section : report) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", section.title);
    for (const ReportRow& row : section.rows) {
      std::string line = fmt::format("  {:<28} {:>18}", row.name, text_of(row));
      if (row.kept) line += fmt::format("   {:<8}", *row.kept ? "kept" : "not kept");
      if (!row.note.empty()) line += "   " + (row.kept ? "usual: " + row.note : row.note);
      text += line + "\n";
    }
  }
  return text;
}

std::string to_json(const std::vector<ReportSection>& report) {
  Json json = Json::object();
  for (const ReportSection& section : report) {
    Json& rows = json[section.name] = Json::object();
    for (const ReportRow& row : section.rows) rows[row.name] = json_of(row);
  }
  return json.dump(2) + "\n";
}

std::string MachineProfile::to_json() const {
  return Json{{"threads", threads},
              {"products_gflops", json_of(products)},
              {"matvec_gbs", json_of(matvecs)},
              {"pointwise_gbs", pointwise_gbs},
              {"op_seconds", op_seconds}}
             .dump(2) +
         "\n";
}

MachineProfile MachineProfile::from_json(const std::string& text) {
  const Json json = parse_strict_json("machine profile", text);
  MachineProfile m;
  m.threads = static_cast<int64_t>(positive(json, "threads"));
  m.products = rates(json, "products_gflops");
  m.matvecs = rates(json, "matvec_gbs");
  m.pointwise_gbs = positive(json, "pointwise_gbs");
  m.op_seconds = positive(json, "op_seconds");
  return m;
}

}  // namespace tapestry
