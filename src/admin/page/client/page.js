/**
 * Keeps the page up to date: listens to the events of the port, puts in what has changed, runs the clocks, and says when the connection
 * is lost. What the parts look like is the server's, which draws them; plots are plots.js's.
 */

/** No word for so long means that the connection is dead, though nobody has said so. */
const SILENCE_MS = 6000;
const RETRY_MS = 1000;
/** Who listens to the page wants to hear other things, too. */
const QUIET_MS = 10_000;

/**
 * @typedef {{ level: string, kind: string, headline: string, detail: string }} Verdict
 * @typedef {{ now: number, verdict: Verdict, fragments: Record<string, string> }} News
 */

const link = elementOf('link');
const aloud = elementOf('aloud');
/** What the server's clock is ahead of this one, milliseconds. */
let aheadMs = 0;
let heardAt = 0;
/** @type {Date | undefined} */
let lostAt;
/** @type {EventSource | undefined} */
let source;
/** The kind of verdict that was told last. */
let kind = '';
let toldAt = -QUIET_MS;

connect();
showClocks(document);
setInterval(() => {
  showClocks(document);
  if (source !== undefined && heardAt > 0 && performance.now() - heardAt > SILENCE_MS) reconnect();
}, 1000);
document.addEventListener('visibilitychange', () => {
  // A page that nobody sees takes no stream from one that somebody does.
  if (document.hidden) disconnect();
  else if (source === undefined) connect();
});

function connect() {
  heardAt = performance.now();
  source = new EventSource('/events');
  source.addEventListener('hello', (event) => {
    const news = JSON.parse(event.data);
    // Another version runs now, whose page this is not.
    if (news.page !== document.body.dataset.page) location.reload();
    hear(news);
    document.dispatchEvent(new CustomEvent('rows', { detail: { rows: news.rows, isAll: true } }));
  });
  source.addEventListener('tick', (event) => {
    const news = JSON.parse(event.data);
    hear(news);
    document.dispatchEvent(new CustomEvent('rows', { detail: { rows: [news.row], isAll: false } }));
  });
  source.addEventListener('error', reconnect);
}

function disconnect() {
  source?.close();
  source = undefined;
}

function reconnect() {
  disconnect();
  if (lostAt === undefined) {
    lostAt = new Date();
    document.documentElement.classList.add('lost');
    say(`Connection lost since ${inTime(lostAt)}; trying again.`);
    link.textContent = `connection lost since ${inTime(lostAt)}, trying again`;
  }
  setTimeout(() => {
    if (source === undefined && !document.hidden) connect();
  }, RETRY_MS);
}

/** @param {News} news */
function hear({ now, verdict, fragments }) {
  heardAt = performance.now();
  aheadMs = now - Date.now();
  if (lostAt !== undefined) say('Connected again.');
  lostAt = undefined;
  document.documentElement.classList.remove('lost');
  link.textContent = 'live';
  for (const [id, html] of Object.entries(fragments)) {
    const template = document.createElement('template');
    template.innerHTML = html;
    showClocks(template.content);
    patchChildren(elementOf(id), template.content);
  }
  document.title = `${verdict.headline} · bearer-sidecar`;
  if (kind === '') kind = verdict.kind;
  if (kind === verdict.kind || heardAt - toldAt < QUIET_MS) return;
  say(`${verdict.headline}. ${verdict.detail}`);
  [kind, toldAt] = [verdict.kind, heardAt];
}

/**
 * To those who do not see the page.
 * @param {string} words
 */
function say(words) {
  aloud.textContent = words;
}

/**
 * Makes one like the other and leaves alone what is the same, so that a selection and the focus outlast a change.
 * @param {Node} old
 * @param {Node} wanted
 */
function patchChildren(old, wanted) {
  const [before, after] = [[...old.childNodes], [...wanted.childNodes]];
  for (const [index, next] of after.entries()) {
    const present = before[index];
    if (present === undefined) old.appendChild(next);
    else if (present.nodeName !== next.nodeName) old.replaceChild(next, present);
    else patch(present, next);
  }
  for (const extra of before.slice(after.length)) old.removeChild(extra);
}

/**
 * @param {Node} old
 * @param {Node} wanted
 */
function patch(old, wanted) {
  if (old.isEqualNode(wanted)) return;
  if (!(old instanceof Element) || !(wanted instanceof Element)) {
    old.nodeValue = wanted.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...wanted.attributes])
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  patchChildren(old, wanted);
}

/** @param {ParentNode} root */
function showClocks(root) {
  const now = Date.now() + aheadMs;
  for (const time of root.querySelectorAll('time')) {
    const { until, since, clock } = time.dataset;
    if (until !== undefined) setText(time, inUnits(Number(until) - now));
    else if (since !== undefined) setText(time, inUnits(now - Number(since)));
    else if (clock !== undefined) setText(time, inTime(new Date(time.dateTime), clock === 'seconds'));
  }
}

/**
 * @param {Element} element
 * @param {string} text
 */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * In its two largest units.
 * @param {number} ms
 */
function inUnits(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [days, hours] = [Math.floor(seconds / 86400), Math.floor((seconds % 86400) / 3600)];
  const [minutes, rest] = [Math.floor((seconds % 3600) / 60), seconds % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

/**
 * The reader's own time of day; with the date when that is another one.
 * @param {Date} at
 * @param {boolean} withSeconds
 */
function inTime(at, withSeconds = true) {
  const parts = [at.getHours(), at.getMinutes(), ...(withSeconds ? [at.getSeconds()] : [])];
  const time = parts.map((part) => String(part).padStart(2, '0')).join(':');
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? time : `${at.toLocaleDateString(undefined, { day: 'numeric', month: 'short' })} ${time}`;
}

/** @param {string} id */
function elementOf(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no ${id}`);
  return element;
}
