/** The last failure of a token request in words (pure): what it means, and what helps. */
import { ALERTS } from '../alerts/alert-table.ts';
import type { TokenState } from '../../token/token.ts';
import { describeSkew, validForMs } from '../status/readiness.ts';
import type { ClockSkew, StatusPageSetting } from '../status/states.ts';
import { isUnchanged, type Known } from './past.ts';

export type TokenFailure = Readonly<Record<'outcome' | 'detail', string>>;

/** What servers say of an assertion whose times do not fit their clock. */
const OUT_OF_TIME =
  /\b(?:expired|exp|iat|nbf|not (?:yet )?valid (?:yet|before)|in the future|clock|skew|too (?:old|early))\b/i;
const FILE_FAULT = /^auth\.[^:]+: the file /;
const CHECK = 'Run `bearer-sidecar check`: it names the first fault between here and the authorization server.';
const CLIENT = 'Check the client id and the client secret: `SIDECAR_CLIENT_ID`, `SIDECAR_CLIENT_SECRET_FILE`.';
const RENEWED =
  'The same client id and secret were accepted before: ask the partner whether the secret has expired or was renewed there, or the client was disabled, and write a new secret into the file of `SIDECAR_CLIENT_SECRET_FILE`.';
const LIMITED =
  'It is requested again by itself. Ask who else uses this client; replicas share one token with `SIDECAR_REDIS_URL`, and `SIDECAR_AUTH_CACHE_FILE` keeps it over restarts.';
const MALFORMED =
  'Ask the operator of the token endpoint whether its response has changed, or something in front of it responds: `bearer-sidecar check` shows what comes. If the token has another name there, set `auth.tokenField`.';
/** Audience and scope were right a moment ago. */
const REVOKED =
  'Ask the partner whether it has withdrawn the access of this client or changed its keys. If other replicas or programs use the same client, each new token may end the one before: share it with `SIDECAR_REDIS_URL`, or use one client each.';

/** One without a usable token before one whose renewal fails. */
export function findFailingToken(tokens: readonly TokenState[]): TokenState | undefined {
  const failing = tokens.filter(({ lastFailure }) => lastFailure !== undefined);
  return failing.find((each) => validForMs(each) <= 0) ?? failing[0];
}

export function describeTokenFailure(failure: TokenFailure): string {
  const { outcome, detail } = failure;
  // First: a server may explain its 404 with an error code.
  if (isTokenPathWrong(failure)) return 'the token endpoint does not exist at this address (404)';
  const error = outcome === 'rejected' ? /error "([^"]+)"/.exec(detail)?.[1] : undefined;
  if (error === 'invalid_client') return 'client authentication failed (invalid_client)';
  if (error !== undefined) return `the authorization server rejects the request (${error})`;
  if (FILE_FAULT.test(detail)) return 'a file of the client cannot be used';
  if (outcome === 'rejected') return 'the authorization server rejects the request';
  if (isLimited(failure)) return 'the authorization server limits the token requests (429)';
  return outcome === 'malformed' ? 'the token endpoint sends invalid responses' : 'the token endpoint is not available';
}

interface TokenContext extends Pick<Known, 'successes'> {
  /** Secrets masked; undefined when unknown. */
  readonly settings: readonly StatusPageSetting[] | undefined;
  readonly clockSkews?: readonly ClockSkew[] | undefined;
}

/** Sentences with settings and commands in backticks. */
export function adviseOnTokenFailure(credential: string, failure: TokenFailure, known: TokenContext): string {
  const { settings, clockSkews = [] } = known;
  const { outcome, detail } = failure;
  const [skew] = clockSkews;
  const isSigned = settings?.some(({ key, value }) => /\.(?:method|grantType)$/.test(key) && value.includes('jwt'));
  if (outcome === 'rejected' && OUT_OF_TIME.test(detail) && isSigned === true)
    return `Compare the clocks: ${skew === undefined ? '' : `${describeSkew(skew)}, and `}an assertion is valid for a minute. Synchronize the wrong one with a time server (NTP).`;
  if (FILE_FAULT.test(detail)) return 'Write or correct the file that is named there: it is read again every 2 s.';
  if (detail.includes('auth.issuer')) return 'Check `auth.issuer` and its metadata with `bearer-sidecar check`.';
  if (isTokenPathWrong(failure)) return adviseOnTokenPath(credential, settings);
  if (detail.includes('invalid_client')) return isUnchanged('token', credential, known) ? RENEWED : CLIENT;
  if (isLimited(failure)) return LIMITED;
  if (outcome === 'malformed') return MALFORMED;
  if (detail.includes('invalid_scope'))
    return 'Ask the partner which scope to request, and set `auth.scope` (`SIDECAR_SCOPE`).';
  if (outcome === 'unavailable')
    return 'Nothing is needed if the authorization server is down: it is tried again by itself. Otherwise check `SIDECAR_AUTH_URL`.';
  return CHECK;
}

/** For a token that the upstream does not accept. @param token its file, if it has one @param wasAccepted with the same settings */
export function adviseOnRejectedToken({ file = null }: { readonly file?: string | null }, wasAccepted = false): string {
  if (file !== null)
    return 'Ask the partner for a new token or API key, and write it into the file of `auth.tokenFile`: it is used within 2 s.';
  return wasAccepted ? REVOKED : ALERTS.BearerSidecarTokenNotAccepted.advice[0];
}

function isLimited({ outcome, detail }: TokenFailure): boolean {
  return outcome === 'unavailable' && /token request with 429\b/.test(detail);
}

function isTokenPathWrong({ detail }: TokenFailure): boolean {
  return /token request with 404\b/.test(detail);
}

/** A full token URL as `auth.url` is the likeliest mistake. */
function adviseOnTokenPath(credential: string, settings: readonly StatusPageSetting[] | undefined): string {
  const find = (key: string): string | undefined => settings?.find((setting) => setting.key === key)?.value;
  const [url, path] = [find('auth.url'), find('auth.tokenPath')];
  if (credential === 'default' && url !== undefined && path !== undefined && path !== '' && url.endsWith(path))
    return `\`auth.url\` already ends with \`${path}\`, and \`auth.tokenPath\` adds it again: set \`SIDECAR_AUTH_URL=${url.slice(0, -path.length)}\``;
  const present = credential === 'default' && url !== undefined && path !== undefined ? `, here \`${url}${path}\`` : '';
  return `The token endpoint is \`auth.url\` followed by \`auth.tokenPath\`${present}: correct \`SIDECAR_AUTH_URL\` or \`SIDECAR_AUTH_TOKEN_PATH\`, and try it with \`bearer-sidecar check\`.`;
}
