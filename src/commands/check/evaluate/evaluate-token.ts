/**
 * What the answer to a token request means, in words with what to do: a refusal by its name (RFC 6749 §5.2), an answer that is none
 * of a token endpoint's, scopes that were not granted, a life that is too short or too long. Pure.
 */
import { findMissingScopes } from '../../../token/endpoint/granted-scope.ts';
import { chooseRefreshDelayMs } from '../../../token/source/refresh-schedule.ts';
import type { TokenRequestFailure, TokenRequestResult } from '../../../token/endpoint/token-response.ts';
import type { NameSetting } from '../setting-names.ts';
import type { CheckFinding } from '../step-runner.ts';

/** The head of the answer, as far as it tells what answered. */
export interface TokenResponseHead {
  readonly status: number;
  readonly contentType: string;
}

export interface TokenCheckContext {
  readonly url: string;
  readonly nameSetting: NameSetting;
  /** `auth.method`. */
  readonly method: string;
  /** Whether the endpoint was found by its issuer. */
  readonly isDiscovered: boolean;
  /** Undefined: there was none. */
  readonly head: TokenResponseHead | undefined;
}

type GrantedToken = Extract<TokenRequestResult, { kind: 'ok' }>;

const SHORT_LIFETIME_MS = 60_000;
const LONG_LIFETIME_MS = 24 * 3_600_000;

/** Why there is no token. */
export function evaluateTokenFailure(answer: TokenRequestFailure, terms: TokenCheckContext): CheckFinding {
  const { head, url } = terms;
  if (answer.kind === 'rejected' && answer.error !== undefined)
    return { outcome: 'fail', detail: answer.detail, advice: adviseByError(answer.error, terms) };
  const where = terms.isDiscovered ? terms.nameSetting('auth.issuer') : nameEndpointSettings(terms);
  if (head === undefined)
    return { outcome: 'fail', detail: answer.detail, advice: `see the steps before this one, and ${where}` };
  if (head.status === 404)
    return {
      outcome: 'fail',
      detail: `POST ${url} was answered with 404`,
      advice: `no token endpoint is there: check ${where}`,
    };
  if (/\bhtml\b/i.test(head.contentType)) {
    const detail = `POST ${url} was answered with ${head.status} and a web page (HTML)`;
    const advice = `that is a login page, a proxy or a maintenance page, no token endpoint: check ${where}`;
    return { outcome: 'fail', detail, advice };
  }
  return { outcome: 'fail', detail: answer.detail, advice: adviseByStatus(head.status, where) };
}

function nameEndpointSettings({ nameSetting }: TokenCheckContext): string {
  return `${nameSetting('auth.url')} and ${nameSetting('auth.tokenPath')}`;
}

function adviseByStatus(status: number, where: string): string {
  if (status === 429) return 'the server limits token requests: wait, and see who else uses this client';
  if (status >= 500) return 'the server is in trouble: try again, then ask whoever runs it';
  if (status >= 300 && status < 400) return `redirects are not followed: put the address it leads to into ${where}`;
  if (status === 200) return `it answers, yet not as a token endpoint: check ${where}, and ask whoever runs it`;
  return `no token endpoint speaks like this, rather something in front of it: check ${where}, and ask whoever runs it`;
}

function adviseByError(error: string, { nameSetting, method }: TokenCheckContext): string {
  // Servers that go by the letter decode what they get, and stumble over a percent sign that is none of an escape.
  const form = `; with a secret that has "+" or "%" in it try ${nameSetting('auth.basicEncoding')} form`;
  const encoding = method === 'client_secret_basic' ? form : '';
  switch (error) {
    case 'invalid_client': {
      const what = `the server does not know this client or its proof (${method}): compare ${nameSetting('auth.clientId')}`;
      const whom = `and ask which ${nameSetting('auth.method')} it expects`;
      return `${what} and ${nameCredentialSettings(method, nameSetting)} with what you were given, ${whom}${encoding}`;
    }
    case 'invalid_scope':
      return `ask for other scopes in ${nameSetting('auth.scope')}, or have the partner grant these to the client`;
    case 'invalid_target':
      return `check ${nameSetting('auth.resource')} and ${nameSetting('auth.audience')} letter by letter`;
    case 'access_denied':
      return `have the partner allow this client the API named in ${nameSetting('auth.audience')}`;
    case 'unauthorized_client':
      return 'have the partner allow this client the grant client_credentials, with what is asked for here';
    case 'unsupported_grant_type':
      return `the server knows no client credentials there: check ${nameSetting('auth.url')} and ${nameSetting('auth.tokenPath')}`;
    case 'invalid_request':
      return `something is missing or too much: see ${nameSetting('auth.audience')}, ${nameSetting('auth.scope')} and ${nameSetting('auth.extraParameters')}${encoding}`;
    default:
      return 'ask the partner what this error means for the client';
  }
}

function nameCredentialSettings(method: string, nameSetting: NameSetting): string {
  switch (method) {
    case 'private_key_jwt':
      return `${nameSetting('auth.privateKeyFile')} and ${nameSetting('auth.keyId')}`;
    case 'tls_client_auth':
      return nameSetting('auth.tlsCertificateFile');
    default:
      return nameSetting('auth.clientSecret');
  }
}

/** What was granted against what was asked for. */
export function evaluateScope(
  asked: string | undefined,
  granted: GrantedToken,
  nameSetting: NameSetting,
): CheckFinding {
  const { scope } = granted;
  if (scope === undefined) return { outcome: 'ok', detail: 'not stated by the server, which leaves it unknown' };
  const missing = findMissingScopes(asked, scope);
  if (missing.length === 0) return { outcome: 'ok', detail: `granted: ${scope}` };
  const detail = `not granted: ${missing.join(' ')}; granted: ${scope}`;
  const advice = `have the partner grant the missing ones to the client, or take them out of ${nameSetting('auth.scope')}`;
  return { outcome: 'fail', detail, advice };
}

/** How long the token lives, and what the refresh schedule makes of it. */
export function evaluateLifetime({ lifetimeMs }: GrantedToken, nowWall: number): CheckFinding {
  const [soonest, latest] = [chooseRefreshDelayMs(lifetimeMs, 0), chooseRefreshDelayMs(lifetimeMs, 1)];
  const until = new Date(nowWall + lifetimeMs).toISOString().replace(/\.\d+Z$/, 'Z');
  const detail = `valid for ${formatSeconds(lifetimeMs)} (until ${until}), renewed after ${formatSeconds(soonest)} to ${formatSeconds(latest)}`;
  if (lifetimeMs < SHORT_LIFETIME_MS) {
    const advice = 'ask the partner for a longer one: an outage of the token endpoint is felt that soon';
    return { outcome: 'warn', detail, advice };
  }
  if (lifetimeMs <= LONG_LIFETIME_MS) return { outcome: 'ok', detail };
  return {
    outcome: 'warn',
    detail,
    advice: 'ask the partner for a shorter one: who gets hold of it can use it that long',
  };
}

function formatSeconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
