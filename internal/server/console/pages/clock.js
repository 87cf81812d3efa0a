// The time to look at: every view can be opened as it was.
import {state} from "./api.js";
import {dialog, h, moment} from "./dom.js";
import {go, here} from "./route.js";

const spans = [["the last ten minutes", 600], ["the last hour", 3600], ["the last day", 86400], ["the last week", 604800], ["the last 30 days", 2592000]];

// look opens this view as it was at a time; now if it is empty.
const look = at => go([here().name, ...here().parts], {...Object.fromEntries(here().query), at});

// clock returns the button for the time, and the way back to now.
export function clock() {
  if (!state.at) return h("button", {title: "Look at the past", click: choose}, "Now");
  return h("span", {class: "clock"}, h("button", {title: "Look at another time", click: choose}, moment(state.at)), h("button", {click: () => look("")}, "Back to now"));
}

// choose asks for a time.
function choose() {
  const end = Date.now();
  let span = 3600;
  const exact = h("input", {type: "datetime-local", step: 1, "aria-label": "Time", change: () => draw(new Date(exact.value).getTime())});
  const slider = h("input", {type: "range", min: 0, max: 1000, "aria-label": "Time within the span", input: () => draw(end - span * (1000 - slider.value))});
  const words = h("p", {class: "quiet", role: "status"});
  const draw = time => {
    time = Math.min(time, end);
    exact.value = moment(time).replace(" ", "T");
    slider.value = 1000 - (end - time) / span;
    words.textContent = `${Math.round((end - time) / 1000).toLocaleString("en")} seconds ago. The server says if it does not remember the time.`;
  };
  const within = h("select", {"aria-label": "Span", change: e => ((span = +e.target.value), draw(end - span / 2))}, spans.map(([name, s]) => h("option", {value: s, selected: s === span}, name)));
  const close = dialog("Look at the past", h("p", {class: "tools"}, within, exact), h("p", null, slider), words,
    h("p", {class: "buttons"}, state.at && h("button", {click: () => (close(), look(""))}, "Back to now"), h("button", {class: "main", click: () => (close(), look(new Date(exact.value).toISOString()))}, "Look")));
  draw(state.at ? Date.parse(state.at) : end - span / 4);
}
