/** The tokens: state, expiry, scopes, and the last failure. One card per credential. */
import type { Status } from '../status/status.ts';
import { ALERTS } from '../alerts/alert-table.ts';
import { adviseOnRejectedToken, adviseOnTokenFailure } from '../verdict/token-failures.ts';
import { markup, renderAdvice, renderBadge, renderClockTime, renderCountdown, renderFacts } from './markup.ts';
import type { Content, Markup, PageView } from './markup.ts';
import { formatCount } from '../quantity-texts.ts';

type TokenStatus = Status['token'];

const CIRCUIT_LABELS = { closed: 'working', open: 'failing', 'half-open': 'being probed' } as const;

export function renderTokens({ status: { tokens }, nowWallAt, settings }: PageView): Markup {
  return markup`${tokens.map(
    (token) => markup`<section class="card" aria-label="${tokens.length === 1 ? 'Token' : `Token ${token.credential}`}">
<h2>Token${tokens.length === 1 ? '' : markup` <span class="name">${token.credential}</span>`} ${renderState(token)}</h2>
${renderFacts(listFacts(token, nowWallAt))}${renderAdvice(adviseOnToken(token, settings))}</section>`,
  )}`;
}

function listFacts(token: TokenStatus, nowWallAt: number): (readonly [string, Content])[] {
  const { scope, missingScopes, credentialFault, lastFailure } = token;
  const isHeld = token.status !== 'none';
  const failure =
    lastFailure &&
    markup`${renderClockTime(Date.parse(lastFailure.at))}: ${lastFailure.detail} (${lastFailure.outcome})`;
  return [
    ['Expires in', isHeld ? renderExpiry(token, nowWallAt) : '–'],
    ['Scopes', scope === null ? (isHeld ? 'not stated' : '–') : scope.split(' ').map((name) => renderScope(name))],
    ['Missing scopes', missingScopes.length > 0 && missingScopes.map((name) => renderScope(name))],
    ...(token.file === null
      ? ([
          ['Next refresh', describeNextRequest(token, nowWallAt)],
          ['Token endpoint', describeEndpoint(token)],
        ] as const)
      : ([['Token file', token.file]] as const)),
    ['Last failure', failure ?? 'none'],
    [
      'New credentials',
      credentialFault !== null &&
        markup`not applied since ${renderClockTime(Date.parse(credentialFault.since))}: ${credentialFault.detail}`,
    ],
  ];
}

function renderExpiry({ validForSeconds, expiresAt }: TokenStatus, nowWallAt: number): Content {
  if (validForSeconds === null || expiresAt === null) return 'no expiry';
  return markup`<strong>${renderCountdown(nowWallAt + validForSeconds * 1000, nowWallAt)}</strong>, at ${renderClockTime(Date.parse(expiresAt))}`;
}

function renderScope(name: string): Markup {
  // Allows line breaks between the parts of a long name.
  const parts = name.split(/(?<=[.:/])/).map((part) => markup`${part}<wbr>`);
  return markup`<span class="scope">${parts}</span> `;
}

function renderState({ status, usesPrevious }: TokenStatus): Markup {
  if (usesPrevious) return renderBadge('wait', 'new token not accepted yet, using the previous one');
  if (status === 'suspect') return renderBadge('wait', 'rejected by the upstream');
  return status === 'valid' ? renderBadge('good', 'valid') : renderBadge('bad', 'none');
}

function describeNextRequest({ nextRequestInSeconds: seconds }: TokenStatus, nowWallAt: number): Content {
  if (seconds === null) return 'not scheduled';
  return seconds < 1 ? 'now' : markup`in ${renderCountdown(nowWallAt + seconds * 1000, nowWallAt)}`;
}

function describeEndpoint({ circuit, consecutiveFailures }: TokenStatus): string {
  if (consecutiveFailures === 0) return CIRCUIT_LABELS[circuit];
  return `${circuit === 'closed' ? 'failed' : CIRCUIT_LABELS[circuit]}: ${formatCount(consecutiveFailures, 'consecutive failure')}`;
}

/** Nothing while the token is valid and refreshed. */
function adviseOnToken(token: TokenStatus, settings: PageView['settings']): readonly string[] {
  const { credential, status, lastFailure, consecutiveFailures, credentialFault, missingScopes } = token;
  return [
    ...(lastFailure !== null && consecutiveFailures > 0
      ? [adviseOnTokenFailure(credential, lastFailure, { settings })]
      : []),
    ...(status === 'suspect' ? [adviseOnRejectedToken(token)] : []),
    ...(credentialFault === null ? [] : ALERTS.BearerSidecarRotationFailing.advice),
    ...(missingScopes.length === 0 ? [] : ALERTS.BearerSidecarScopeMissing.advice),
  ];
}
