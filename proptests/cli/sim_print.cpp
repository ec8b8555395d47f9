// Printing findings; source lines of C code come from addr2line, where it is installed.
#include "sim_print.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace granule::cli {
namespace {

/// What a program prints; empty if it cannot be run.
std::string output_of(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    close(ends[0]);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    std::_Exit(127);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof(part))) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  return text;
}

/// "      function  file:line" for the address and each function that it is inlined into; empty if
/// nobody knows the line.
std::string lines_of_address(const std::string& module, const std::string& offset) {
  std::istringstream in(output_of({"addr2line", "-f", "-C", "-i", "-e", module, offset}));
  std::string out;
  std::string function;
  std::string place;
  while (std::getline(in, function) && std::getline(in, place)) {
    place = place.substr(0, place.find(' '));
    if (place.find('?') != std::string::npos) return {};
    out += "      " + function + "  " + place + "\n";
  }
  return out;
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& item : list) out += (out.empty() ? "" : ",") + item;
  return out;
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

void write_json(const SimOutcome& outcome, const std::string& file) {
  std::vector<std::string> findings;
  std::vector<std::string> faults;
  std::vector<std::string> unsupported;
  for (const SimFinding& finding : outcome.report.findings) findings.push_back(finding.json);
  for (const std::string& fault : outcome.report.faults) faults.push_back(json_string(fault));
  for (const auto& [name, count] : outcome.report.unsupported)
    unsupported.push_back(json_string(name) + ":" + std::to_string(count));
  const std::string json = "{\"exit_code\":" + std::to_string(outcome.exit_code) +
                           ",\"open\":" + std::to_string(outcome.report.open()) +
                           ",\"calls\":" + std::to_string(outcome.report.calls) +
                           ",\"processes\":" + std::to_string(outcome.report.processes) +
                           ",\"findings\":[" + joined(findings) + "],\"faults\":[" +
                           joined(faults) + "],\"unsupported\":{" + joined(unsupported) + "}}\n";
  if (file == "-") {
    std::cout << json << std::flush;
    return;
  }
  std::ofstream out(file);
  out << json;
  if (!out) std::fprintf(stderr, "granule sim: %s could not be written\n", file.c_str());
}

}  // namespace

std::string with_lines(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    const std::size_t open = line.rfind("  [");
    const std::size_t plus = line.rfind("+0x");
    if (open != std::string::npos && plus != std::string::npos && plus > open &&
        line.back() == ']') {
      const std::string module = line.substr(open + 3, plus - open - 3);
      const std::string offset = line.substr(plus + 1, line.size() - plus - 2);
      const std::string named = lines_of_address(module, offset);
      if (!named.empty()) {
        out += named;
        continue;
      }
    }
    out += line + "\n";
  }
  return out;
}

void print_report(const SimOutcome& outcome, const std::string& json_file) {
  const SimReport& report = outcome.report;
  std::string text;
  std::uint64_t suppressed = 0;
  std::uint64_t leaks = 0;
  for (const SimFinding& finding : report.findings) {
    suppressed += finding.suppressed ? 1 : 0;
    if (finding.suppressed) continue;
    leaks += finding.type == "leak" ? 1 : 0;
    text += with_lines(finding.text);
  }
  for (const std::string& fault : report.faults) text += "fault delivered: " + fault + "\n";
  for (const auto& [name, count] : report.unsupported)
    text += "not simulated: " + name + ", " + std::to_string(count) +
            (count == 1 ? " call\n" : " calls\n");
  std::fputs(text.c_str(), stderr);
  if (outcome.exit_code > 128)
    std::fprintf(stderr, "granule sim: the command was ended by signal %d\n",
                 outcome.exit_code - 128);
  if (report.processes == 0) {
    std::fprintf(stderr,
                 "granule sim: no process reported: none initialised the driver, or it "
                 "ended without running its exit handlers\n");
  } else {
    std::fprintf(stderr,
                 "granule sim: %llu leaks, %llu misuses, %llu suppressed, in %llu driver "
                 "calls\n",
                 static_cast<unsigned long long>(leaks),
                 static_cast<unsigned long long>(report.open() - leaks),
                 static_cast<unsigned long long>(suppressed),
                 static_cast<unsigned long long>(report.calls));
  }
  if (!json_file.empty()) write_json(outcome, json_file);
}

}  // namespace granule::cli
