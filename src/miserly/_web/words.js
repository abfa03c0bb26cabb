"use strict";
// Numbers and small pieces of the page.

/** A number as people read it, by the rule of the run's table: four digits, large ones whole, ties to even. */
function figure(x) {
  if (x === null || x === undefined) return "";
  if (typeof x !== "number") return String(x);
  const size = Math.abs(x);
  if (size >= 1e4 && size < 1e15) return whole(x).toLocaleString("en-US", { maximumFractionDigits: 0 });
  if (x === 0) return "0";
  let [digits, exponent] = roundedDigits(x, 4);
  if (exponent < -4 || exponent >= 4) {
    const sign = exponent < 0 ? "-" : "+";
    return `${trimmed(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  return trimmed((Number(digits) * 10 ** exponent).toFixed(Math.max(0, 3 - exponent)));
}

/** The digits of x as d.ddd and its exponent; where x lies in the middle of two, the even one. */
function roundedDigits(x, n) {
  const [exact, exactExponent] = x.toExponential(60).split("e");
  let [digits, exponent] = x.toExponential(n - 1).split("e");
  const tail = exact.replace("-", "").replace(".", "").slice(n);
  if (/^50*$/.test(tail)) {
    const down = exact.slice(0, exact.indexOf(".") + n);
    if (Number(down.at(-1)) % 2 === 0) [digits, exponent] = [down, exactExponent];
  }
  return [digits, Number(exponent)];
}

function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function whole(x) {
  const low = Math.floor(x);
  if (x - low === 0.5) return low % 2 === 0 ? low : low + 1;
  return Math.round(x);
}

/** How sure a figure is: two digits tell it. */
function twoDigits(x) {
  return x === null ? "" : figure(Number(x.toPrecision(2)));
}

function percent(share) {
  if (share === null) return "";
  const value = 100 * share;
  return value > 0 && value < 1 ? "< 1 %" : value < 100 && value > 99 ? "> 99 %" : `${Math.round(value)} %`;
}

function money(x) {
  if (!Number.isFinite(x)) return "";
  return x.toLocaleString("en-US", { maximumFractionDigits: Math.abs(x) < 100 ? 2 : 0 });
}

function some(names, most) {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function clipped(text, most) {
  return text.length <= most ? text : text.slice(0, Math.max(1, most - 1)).trimEnd() + "…";
}

function many(n, one, several) {
  return `${n.toLocaleString("en-US")} ${n === 1 ? one : several || one + "s"}`;
}

const byId = (id) => document.getElementById(id);

/** An element of HTML; children are elements or text, never markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  return furnish(element, attributes, children);
}

/** An element of SVG. */
function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  return furnish(element, attributes, children);
}

function furnish(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A sentence in which **what counts** stands between stars. */
function sentence(text) {
  return text.split("**").map((part, i) => (i % 2 ? make("strong", {}, part) : part));
}
