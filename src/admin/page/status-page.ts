/**
 * The status page: what /status says, as a page for a person. It is drawn once per request, asks nothing of the network
 * and runs no script; which the policy it is sent with enforces.
 */
import { createHash } from 'node:crypto';
import type { Readiness } from '../readiness.ts';
import type { Status } from '../status.ts';

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }
th { font-weight: 600; width: 14rem; }
td { overflow-wrap: anywhere; }
`;

/** The Content-Security-Policy of the page: its own style sheet and nothing else. */
export const STATUS_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The page as HTML; every value is escaped. */
export function renderStatusPage(status: Status, readiness: Readiness): string {
  const { tokens, throttles, fleet } = status;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>bearer-sidecar</title>
<style>${STYLE}</style>
</head>
<body>
<h1>bearer-sidecar ${escapeHtml(status.version)}</h1>
<p><strong>${readiness.ready ? 'Ready' : 'Not ready'}</strong>: ${escapeHtml(readiness.reasons.join('; '))}.
Up for ${status.uptimeSeconds} s. As of the moment of loading; reload for newer values.</p>
${renderDegradation(status.degraded)}${tokens.map((token) => renderToken(token, tokens.length > 1)).join('\n')}
${throttles.map((throttle) => renderThrottle(throttle, throttles.length > 1)).join('\n')}
${fleet === null ? '' : renderFleet(fleet)}
<p><a href="/status">status as JSON</a> · <a href="/metrics">metrics</a> · <a href="/readyz">readiness</a></p>
</body>
</html>
`;
}

function renderToken(token: Status['token'], isNamed: boolean): string {
  return `<h2>Token${isNamed ? ` of ${escapeHtml(token.credential)}` : ''}</h2>
${renderTable([
  ['Status', token.status],
  ['Expires', token.expiresAt],
  ['Valid for', inSeconds(token.validForSeconds)],
  ['Scope', token.scope],
  ['Scopes missing', token.missingScopes.join(' ') || null],
  ['Token endpoint', { closed: 'works', open: 'keeps failing', 'half-open': 'being probed' }[token.circuit]],
  ['Next request in', inSeconds(token.nextRequestInSeconds)],
  ['Failures in a row', token.consecutiveFailures],
  ['Last failure', token.lastFailure && `${token.lastFailure.outcome}: ${token.lastFailure.detail}`],
])}`;
}

function renderDegradation(degraded: Status['degraded']): string {
  if (degraded.length === 0) return '';
  return `<h2>To be looked at</h2>\n<ul>${degraded.map((words) => `<li>${escapeHtml(words)}</li>`).join('')}</ul>\n`;
}

function renderThrottle(throttle: Status['throttle'], isNamed: boolean): string {
  const of = isNamed ? ` of ${escapeHtml(throttle.route)}` : '';
  return `<h2>Throttle${of}</h2>
${renderTable([
  ['Mode', throttle.mode],
  ['Rate', throttle.unpaced ? 'unpaced' : `${throttle.rate} permits per second`],
  ['Limit', throttle.learned && inWords(throttle.learned)],
  ['Paused for', inSeconds(throttle.pausedSeconds)],
  ['Waiting', inClasses(throttle)],
  ['In flight', `${throttle.inFlight} of ${throttle.inFlightLimit ?? 'any number'}`],
  ['Streams', throttle.streams],
])}
<h2>Rate-limit signals${of}</h2>
${renderSignals(throttle.recentSignals)}`;
}

function renderSignals(signals: Status['throttle']['recentSignals']): string {
  if (signals.length === 0) return '<p>None so far.</p>';
  return renderTable(
    signals.map(({ at, status, pauseSeconds, stated, fields }) => [
      at,
      `${status}, pause ${inSeconds(pauseSeconds) ?? 'without end'} (${stated ? 'stated' : 'estimated'}) ${JSON.stringify(fields)}`,
    ]),
  );
}

function renderFleet({ connected, fault, since }: NonNullable<Status['fleet']>): string {
  const words = connected ? 'joined' : fault === null ? 'not joined yet' : `alone: ${fault}`;
  return `<h2>Fleet</h2>\n${renderTable([['Status', `${words}, since ${since}`]])}`;
}

function renderTable(rows: readonly (readonly [string, string | number | null])[]): string {
  const lines = rows.map(
    ([name, value]) => `<tr><th scope="row">${escapeHtml(name)}</th><td>${escapeHtml(String(value ?? '–'))}</td></tr>`,
  );
  return `<table>\n${lines.join('\n')}\n</table>`;
}

function inClasses({ queued, queuedByPriority: { high, normal, low } }: Status['throttle']): string {
  return high + low === 0 ? String(queued) : `${queued} (high ${high}, normal ${normal}, low ${low})`;
}

/** In one plain line. */
function inWords(learned: NonNullable<Status['throttle']['learned']>): string {
  const { limit, windowSeconds, kind, confidence, since } = learned;
  if (confidence === 'none' || limit === null) return 'none seen so far';
  const calls = windowSeconds === null ? `${limit} calls` : `${limit} calls in ${windowSeconds} s`;
  return `${calls}, ${kind}, ${confidence} confidence, since ${since}`;
}

function inSeconds(value: number | null): string | null {
  return value === null ? null : `${value} s`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
