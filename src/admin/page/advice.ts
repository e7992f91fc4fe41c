/**
 * What an operator does about each bad state (pure): one sentence each, with the setting or the command in backticks. health-summary.ts
 * and the cards show them.
 */
import { ALERTS } from '../alerts/alert-table.ts';
import type { AlertName } from '../alerts/alert-table.ts';
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
    ...alerts.flatMap(({ name }) => ALERTS[name].advice),
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
    ...(token.status === 'suspect' ? ALERTS.BearerSidecarTokenNotAccepted.advice : []),
    ...(credentialFault === null ? [] : ALERTS.BearerSidecarRotationFailing.advice),
    ...(missingScopes.length === 0 ? [] : ALERTS.BearerSidecarScopeMissing.advice),
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
    ? ALERTS.BearerSidecarFleetDegraded.advice
    : ALERTS.BearerSidecarFleetDisconnected.advice;
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
    : ALERTS.BearerSidecarReloadFailed.advice;
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
