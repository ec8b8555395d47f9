// What every page carries: its style and its script.
#pragma once

#include <string_view>

namespace granule::prop::picture {

inline constexpr std::string_view kPageStyle = R"(
body{font:14px/1.4 "DejaVu Sans",Verdana,Arial,sans-serif;margin:0;color:#222;background:#fff}
header,section{padding:0 16px}
h1{font-size:20px}
h2{font-size:16px;margin:24px 0 4px}
.hint{color:#555;font-size:12px}
.failure{white-space:pre-wrap;border-left:5px solid #A3160B;background:#fbeceb;padding:6px 10px;margin:6px 0}
.columns{display:flex;gap:16px;align-items:flex-start}
.steps{position:relative;flex:0 0 38%;max-width:620px;max-height:92vh;overflow:auto;margin:0;padding:0;list-style:none;
border:1px solid #bbb;font:12px/1.5 "DejaVu Sans Mono",Menlo,Consolas,monospace}
.steps>li{padding:2px 8px;border-left:5px solid transparent;overflow-wrap:anywhere}
.steps>li[data-picture]{cursor:pointer}
.steps>li[aria-current]{background:#e4effa;border-left-color:#0072B2}
.steps>li.failed{background:#fbeceb}
.steps>li.failed[aria-current]{border-left-color:#A3160B}
.steps>li.skipped .statement,.steps>li.never{color:#777}
.line{color:#777;display:inline-block;min-width:2.6em}
.thread{font-weight:bold}
.gives{color:#00563f}
.never .gives{color:#777}
.failed .gives,.mark,.why{color:#A3160B;font-weight:bold}
.why{display:block;padding-left:2.6em;white-space:pre-wrap}
details{padding-left:2.6em}
summary{color:#555;cursor:pointer}
details ol{margin:0;padding-left:2.2em}
.refused{color:#A3160B}
.by{color:#777}
.pictures{flex:1 1 auto;min-width:0;overflow:auto;position:sticky;top:0}
.pictures [hidden]{display:none}
figure{margin:8px 0}
.pictures h3{font-size:13px;margin:0 16px}
svg.space{max-width:none}
)";

inline constexpr std::string_view kPageScript = R"(
(function () {
  var steps = Array.prototype.slice.call(document.querySelectorAll('li[data-picture]'));
  var at = -1;
  function show(next, quiet) {
    if (next < 0 || next >= steps.length) return;
    var step = steps[next], section = step.closest('section');
    section.querySelectorAll('li[aria-current]').forEach(function (other) {
      other.removeAttribute('aria-current');
      var calls = other.querySelector('details');
      if (calls) calls.open = false;
    });
    step.setAttribute('aria-current', 'step');
    var calls = step.querySelector('details');
    if (calls) calls.open = true;
    section.querySelectorAll('figure').forEach(function (figure) {
      figure.hidden = figure.id !== step.dataset.picture;
    });
    section.querySelector('.when').textContent = step.dataset.when;
    at = next;
    if (quiet) {
      step.parentNode.scrollTop = step.offsetTop;
      return;
    }
    step.scrollIntoView({block: 'nearest'});
    try { history.replaceState(null, '', '#' + step.id); } catch (e) { /* not everywhere on files */ }
  }
  steps.forEach(function (step, i) {
    step.addEventListener('click', function (event) {
      if (!event.target.closest('details')) show(i);
    });
  });
  steps.slice().reverse().forEach(function (step) {
    if (step.hasAttribute('aria-current')) show(steps.indexOf(step), true);
  });
  document.addEventListener('keydown', function (event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    var next = {ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1,
                Home: 0, End: steps.length - 1}[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next);
  });
  function go() {
    var named = document.getElementById(location.hash.slice(1));
    if (named && steps.indexOf(named) >= 0) show(steps.indexOf(named));
  }
  window.addEventListener('hashchange', go);
  go();
})();
)";

}  // namespace granule::prop::picture
