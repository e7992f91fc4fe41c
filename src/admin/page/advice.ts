/**
 * What an operator does about each bad state (pure): one sentence each, with the setting or the command in backticks. health-summary.ts
 * and the cards show them.
 */
import type { AlertName } from '../alerts/alert-rules.ts';
import type { StatusPageSetting } from '../status/configuration.ts';
import type { Status } from '../status/status-shape.ts';
import { markup } from './markup.ts';
import type { Markup } from './markup.ts';
import type { CodeCount } from '../samples/traffic.ts';

/** The states that advice depends on. */
export interface AdviceInputs {
  readonly status: Status;
  /** Secrets masked; undefined when unknown. */
  readonly settings: readonly StatusPageSetting[] | undefined;
  /** Of the last five minutes. */
  readonly codes: readonly CodeCount[];
}

const CHECK =
  'Run `bearer-sidecar check` with the settings of this process: it names the first fault between here and the partner.';
const ASK_FOR_LIMIT = 'Send fewer calls, or agree a higher limit with the partner.';

const ALERT_ADVICE: Readonly<Record<AlertName, readonly string[]>> = {
  BearerSidecarRequestsFailing: ['See status and reason of the failed calls under Recent calls.'],
  BearerSidecarTokenMissing: [CHECK],
  BearerSidecarClientRejected: ['Check client id, secret, audience and scope with `bearer-sidecar check`.'],
  BearerSidecarTokenExpiring: [
    'The token must be refreshed before it expires; see the last failure under Token.',
    CHECK,
  ],
  BearerSidecarUpstreamUnreachable: ['Check `SIDECAR_BASE_URL`, DNS, firewall and proxy from this machine.', CHECK],
  BearerSidecarUpstreamErrors: [
    'Give the partner the time, the path and the status of a failed call under Recent calls.',
  ],
  BearerSidecarTokenNotAccepted: [
    'Check `SIDECAR_AUDIENCE` and `SIDECAR_SCOPE`, and that `SIDECAR_AUTH_URL` and `SIDECAR_BASE_URL` are of the same environment.',
  ],
  BearerSidecarRequestsShed: [
    ASK_FOR_LIMIT,
    'A longer wait, if the callers can wait: `SIDECAR_QUEUE_TIMEOUT_MS`, within `SIDECAR_DEADLINE_MS`.',
  ],
  BearerSidecarQueueSaturated: [ASK_FOR_LIMIT, 'More places, if the callers can wait: `SIDECAR_QUEUE_MAX`.'],
  BearerSidecarQueueSlow: [ASK_FOR_LIMIT, 'Urgent calls go first with the header field `x-sidecar-priority: high`.'],
  BearerSidecarPaused: [
    'A quota per hour or per day may be used up: see the last rate-limit response under Rate limit.',
  ],
  BearerSidecarRateLimited: [
    'Another client may use the same quota: leave a part of it with `SIDECAR_THROTTLE_MAX_RATE` or `throttle.share`.',
  ],
  BearerSidecarResponsesCut: [
    'Compare `SIDECAR_BODY_IDLE_TIMEOUT_MS` with the pauses within responses of the partner.',
  ],
  BearerSidecarRetryBudgetExhausted: ['Failed attempts are not repeated while so many fail; see the causes above.'],
  BearerSidecarScopeMissing: ['Ask the partner to grant the scopes, or correct `SIDECAR_SCOPE`.'],
  BearerSidecarTokenEndpointFailing: [CHECK],
  BearerSidecarRotationFailing: ['Correct the new secret at its source; the previous one stays in use until then.'],
  BearerSidecarReloadFailed: ['Correct the configuration as its last reload says, then send SIGHUP.'],
  BearerSidecarFleetDisconnected: [
    'Check `SIDECAR_REDIS_URL` and that Redis can be reached; nothing else depends on it.',
  ],
  BearerSidecarFleetDegraded: ['Compare the latency of Redis with `fleet.timeoutMs`.'],
};

/** The alerts that the last failure of a token explains better. */
const TOKEN_ALERTS: ReadonlySet<AlertName> = new Set<AlertName>([
  'BearerSidecarTokenMissing',
  'BearerSidecarClientRejected',
  'BearerSidecarTokenExpiring',
  'BearerSidecarTokenEndpointFailing',
]);

/** For every alert that holds, and every warning of /status; each sentence once, the cause before its effects. */
export function listAdvice({ status, settings, codes }: AdviceInputs): string[] {
  const onTokens = status.tokens.flatMap((token) => adviseOnToken(token, settings));
  const isWithoutToken = status.alerts.some(({ name }) => name === 'BearerSidecarTokenMissing');
  const alerts = status.alerts.filter(
    ({ name }) =>
      !(onTokens.length > 0 && TOKEN_ALERTS.has(name)) && !(isWithoutToken && name === 'BearerSidecarRequestsFailing'),
  );
  const advice = [
    ...onTokens,
    ...adviseOnRefusals(status, codes),
    ...alerts.flatMap(({ name }) => ALERT_ADVICE[name]),
    ...adviseOnReload(status),
    ...adviseOnFleet(status),
    ...(status.degraded.some((text) => text.startsWith('log: '))
      ? ['Check what reads standard output, and the space where it is stored.']
      : []),
  ];
  return [...new Set(advice)];
}

/** A bare 503 may be a rate limit; before there is evidence of it, only the partner knows. */
function adviseOnRefusals({ throttles, alerts }: Status, codes: readonly CodeCount[]): string[] {
  const proposals = throttles.flatMap(({ refusalProposals }) => refusalProposals);
  if (proposals.length > 0)
    return proposals.map(({ setting, status }) => `If ${status} is the rate limit of the partner, set \`${setting}\``);
  const hasErrors = alerts.some(({ name }) => name === 'BearerSidecarUpstreamErrors');
  const isBare503 = codes.some(({ code, source }) => code === 503 && source === 'upstream');
  return hasErrors && isBare503
    ? ['Ask the partner whether 503 is its rate limit; if so, set `SIDECAR_THROTTLE_REFUSALS=[{"status":503}]`']
    : [];
}

/** Nothing while the token is valid and refreshed. */
export function adviseOnToken(token: Status['token'], settings: AdviceInputs['settings']): string[] {
  const { lastFailure, consecutiveFailures, credentialFault, missingScopes } = token;
  return [
    ...(lastFailure !== null && consecutiveFailures > 0 ? adviseOnFailure(token, lastFailure, settings) : []),
    ...(token.status === 'suspect' ? ALERT_ADVICE.BearerSidecarTokenNotAccepted : []),
    ...(credentialFault === null ? [] : ALERT_ADVICE.BearerSidecarRotationFailing),
    ...(missingScopes.length === 0 ? [] : ALERT_ADVICE.BearerSidecarScopeMissing),
  ];
}

/** Nothing while requests neither wait nor pause. */
export function adviseOnThrottle({
  pausedSeconds,
  unpaced,
  queued,
  mode,
  recentSignals,
}: Status['throttle']): string[] {
  if (pausedSeconds === null || pausedSeconds >= 1)
    return [
      recentSignals[0]?.stated === true
        ? 'Nothing: the upstream stated the wait, and the requests go on after it.'
        : 'Nothing: one request tries the upstream after the pause. `throttle.maxPauseMs` bounds it.',
    ];
  if (unpaced || queued === 0) return [];
  return mode === 'static' ? ['The rate is `SIDECAR_RATE`; `auto` learns it.'] : [ASK_FOR_LIMIT];
}

export function adviseOnFleet({ fleet }: Pick<Status, 'fleet'>): readonly string[] {
  if (fleet === null || fleet.connected) return [];
  return fleet.state === 'degraded'
    ? ALERT_ADVICE.BearerSidecarFleetDegraded
    : ALERT_ADVICE.BearerSidecarFleetDisconnected;
}

/** Whether the token endpoint does not exist at the configured address. */
export function isTokenPathWrong({ detail }: { readonly detail: string }): boolean {
  return /token request with 404\b/.test(detail);
}

/** Sentences with their settings and commands as code; nothing without a sentence. */
export function renderAdvice(sentences: readonly string[]): Markup {
  if (sentences.length === 0) return markup``;
  return markup`<div class="advice"><h3>What to do</h3><ul>${sentences.map(
    (sentence) => markup`<li>${renderCode(sentence)}</li>`,
  )}</ul></div>`;
}

function renderCode(sentence: string): Markup[] {
  return sentence.split('`').map((part, index) => (index % 2 === 1 ? markup`<code>${part}</code>` : markup`${part}`));
}

function adviseOnReload({ configuration }: Status): readonly string[] {
  const outcome = configuration?.lastReload?.outcome ?? 'ok';
  if (outcome === 'ok') return [];
  return outcome === 'refused'
    ? ['Restart the sidecar to apply the changed settings.']
    : ALERT_ADVICE.BearerSidecarReloadFailed;
}

function adviseOnFailure(
  { credential }: Status['token'],
  failure: { readonly outcome: string; readonly detail: string },
  settings: AdviceInputs['settings'],
): string[] {
  const { outcome, detail } = failure;
  if (detail.includes('auth.issuer')) return ['Check `auth.issuer` and its metadata with `bearer-sidecar check`.'];
  if (isTokenPathWrong(failure)) return [adviseOnTokenPath(credential, settings)];
  if (detail.includes('invalid_client'))
    return ['Check the client id and the client secret: `SIDECAR_CLIENT_ID`, `SIDECAR_CLIENT_SECRET_FILE`.', CHECK];
  if (detail.includes('invalid_scope')) return ['Check `SIDECAR_SCOPE` with the names that the partner gave.'];
  if (outcome === 'unavailable')
    return [
      'Nothing is needed if the partner is down: it is tried again by itself. Otherwise check `SIDECAR_AUTH_URL`.',
      CHECK,
    ];
  return [CHECK];
}

/** A full token URL as `auth.url` is the likeliest mistake. */
function adviseOnTokenPath(credential: string, settings: AdviceInputs['settings']): string {
  const find = (key: string): string | undefined => settings?.find((setting) => setting.key === key)?.value;
  const [url, path] = [find('auth.url'), find('auth.tokenPath')];
  if (credential === 'default' && url !== undefined && path !== undefined && path !== '' && url.endsWith(path))
    return `\`auth.url\` already ends with \`${path}\`, and \`auth.tokenPath\` adds it again: set \`SIDECAR_AUTH_URL=${url.slice(0, -path.length)}\``;
  const present = credential === 'default' && url !== undefined && path !== undefined ? `, here \`${url}${path}\`` : '';
  return `The token endpoint is \`auth.url\` followed by \`auth.tokenPath\`${present}: correct \`SIDECAR_AUTH_URL\` or \`SIDECAR_AUTH_TOKEN_PATH\`, and try it with \`bearer-sidecar check\`.`;
}
