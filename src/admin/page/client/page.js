/**
 * Updates the page: receives events of the admin port, replaces changed fragments, runs the clocks, filters the recent calls, and shows a
 * lost connection. The server renders the fragments; plots.js draws the plots.
 */

/** Without an event for this long the connection is taken for lost. */
const SILENCE_MS = 6000;
const RETRY_MS = 1000;
/** Least time between two announcements to screen readers. */
const ANNOUNCE_INTERVAL_MS = 10_000;

/**
 * @typedef {{ where: string, code: string | null, headline: string, detail: string }} Verdict
 * @typedef {{ now: number, verdict: Verdict, fragments: Record<string, string> }} Update
 */

const link = elementOf('link');
const announcement = elementOf('aloud');
/** Server time minus local time, milliseconds. */
let clockOffsetMs = 0;
let receivedAt = 0;
/** @type {Date | undefined} */
let lostAt;
/** @type {EventSource | undefined} */
let source;
/** The kind of problem that was announced last. */
let announcedKind = '';
let announcedAt = -ANNOUNCE_INTERVAL_MS;

const filters = {
  statusClass: /** @type {HTMLSelectElement} */ (elementOf('calls-class')),
  text: /** @type {HTMLInputElement} */ (elementOf('calls-text')),
};

connect();
showClocks(document);
elementOf('calls-filter').hidden = false;
for (const control of Object.values(filters))
  control.addEventListener('input', () => {
    announce(filterCalls());
  });
setInterval(() => {
  showClocks(document);
  if (source !== undefined && receivedAt > 0 && performance.now() - receivedAt > SILENCE_MS) reconnect();
}, 1000);
document.addEventListener('visibilitychange', () => {
  // The number of streams is limited: a hidden page gives up its own.
  if (document.hidden) disconnect();
  else if (source === undefined) connect();
});

function connect() {
  receivedAt = performance.now();
  source = new EventSource('/events');
  source.addEventListener('hello', (event) => {
    const update = JSON.parse(event.data);
    // The server runs another version now.
    if (update.page !== document.body.dataset.page) location.reload();
    applyUpdate(update);
    document.dispatchEvent(new CustomEvent('rows', { detail: { rows: update.rows, isAll: true } }));
  });
  source.addEventListener('tick', (event) => {
    const update = JSON.parse(event.data);
    applyUpdate(update);
    document.dispatchEvent(new CustomEvent('rows', { detail: { rows: [update.row], isAll: false } }));
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
    announce(`Connection lost since ${formatTime(lostAt)}; reconnecting.`);
    link.textContent = `connection lost since ${formatTime(lostAt)}, reconnecting`;
  }
  setTimeout(() => {
    if (source === undefined && !document.hidden) connect();
  }, RETRY_MS);
}

/** @param {Update} update */
function applyUpdate({ now, verdict, fragments }) {
  receivedAt = performance.now();
  clockOffsetMs = now - Date.now();
  if (lostAt !== undefined) announce('Connected again.');
  lostAt = undefined;
  document.documentElement.classList.remove('lost');
  link.textContent = 'live';
  for (const [id, html] of Object.entries(fragments)) {
    const template = document.createElement('template');
    template.innerHTML = html;
    showClocks(template.content);
    patchChildren(elementOf(id), template.content);
  }
  if ('calls' in fragments) filterCalls();
  document.title = `${verdict.headline} · bearer-sidecar`;
  const kind = `${verdict.where} ${verdict.code}`;
  if (announcedKind === '') announcedKind = kind;
  if (announcedKind === kind || receivedAt - announcedAt < ANNOUNCE_INTERVAL_MS) return;
  announce(`${verdict.headline}. ${verdict.detail}`);
  [announcedKind, announcedAt] = [kind, receivedAt];
}

/**
 * Hides the rows that do not match.
 * @returns how many are shown, as text
 */
function filterCalls() {
  const rows = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('#calls tbody tr'));
  const [statusClass, text] = [filters.statusClass.value, filters.text.value.trim().toLowerCase()];
  let shown = 0;
  for (const row of rows) {
    const hasClass = statusClass === '' || row.dataset.class === statusClass;
    row.hidden = !(hasClass && (row.textContent ?? '').toLowerCase().includes(text));
    if (!row.hidden) shown++;
  }
  const summary = rows.length === 0 ? '' : `${shown} of ${rows.length} shown`;
  setText(elementOf('calls-shown'), summary);
  return summary;
}

/**
 * To screen readers.
 * @param {string} text
 */
function announce(text) {
  announcement.textContent = text;
}

/**
 * Changes only the nodes that differ, so that selection and focus are kept.
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
  // What the reader has opened stays open.
  for (const { name } of [...old.attributes])
    if (!wanted.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  for (const { name, value } of [...wanted.attributes])
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  patchChildren(old, wanted);
}

/** @param {ParentNode} root */
function showClocks(root) {
  const now = Date.now() + clockOffsetMs;
  for (const time of root.querySelectorAll('time')) {
    const { until, since, clock } = time.dataset;
    if (until !== undefined) setText(time, formatDuration(Number(until) - now));
    else if (since !== undefined) setText(time, formatDuration(now - Number(since)));
    else if (clock !== undefined) setText(time, formatTime(new Date(time.dateTime), clock === 'seconds'));
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
 * A duration in its two largest units, as `formatDuration` of quantity-texts.ts.
 * @param {number} ms
 */
function formatDuration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [days, hours] = [Math.floor(seconds / 86400), Math.floor((seconds % 86400) / 3600)];
  const [minutes, rest] = [Math.floor((seconds % 3600) / 60), seconds % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

/**
 * The local time of day; with the date unless it is today.
 * @param {Date} at
 * @param {boolean} withSeconds
 */
function formatTime(at, withSeconds = true) {
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
