/**
 * The status page: what /status says, as a page for a person. It is drawn once per request, asks nothing of the network
 * and runs no script; which the policy it is sent with enforces.
 */
import { createHash } from 'node:crypto';
import type { Readiness, Status } from '../status.ts';

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
  const { token, throttle } = status;
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
<h2>Token</h2>
${renderTable([
  ['Status', token.status],
  ['Expires', token.expiresAt],
  ['Valid for', inSeconds(token.validForSeconds)],
  ['Scope', token.scope],
  ['Next request in', inSeconds(token.nextRequestInSeconds)],
  ['Failures in a row', token.consecutiveFailures],
  ['Last failure', token.lastFailure && `${token.lastFailure.outcome}: ${token.lastFailure.detail}`],
])}
<h2>Throttle</h2>
${renderTable([
  ['Mode', throttle.mode],
  ['Rate', throttle.unpaced ? 'unpaced' : `${throttle.rate} permits per second`],
  ['Paused for', inSeconds(throttle.pausedSeconds)],
  ['Waiting', throttle.queued],
  ['In flight', `${throttle.inFlight} of ${throttle.inFlightLimit ?? 'any number'}`],
  ['Streams', throttle.streams],
])}
<h2>Rate-limit signals</h2>
${renderSignals(throttle.recentSignals)}
<p><a href="/status">status as JSON</a> · <a href="/metrics">metrics</a> · <a href="/readyz">readiness</a></p>
</body>
</html>
`;
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

function renderTable(rows: readonly (readonly [string, string | number | null])[]): string {
  const lines = rows.map(
    ([name, value]) => `<tr><th scope="row">${escapeHtml(name)}</th><td>${escapeHtml(String(value ?? '–'))}</td></tr>`,
  );
  return `<table>\n${lines.join('\n')}\n</table>`;
}

function inSeconds(value: number | null): string | null {
  return value === null ? null : `${value} s`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
