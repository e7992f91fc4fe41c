/** Evaluates the response to a token request (RFC 6749 §5): errors, missing scopes, an unusual lifetime. Pure. */
import type { AuthConfig } from '../../../config/config.ts';
import { maskQuery } from '../../../platform/secret-redaction.ts';
import { describeTokenUrlSettings } from '../../../token/endpoint/token-url.ts';
import { describeMissingTarget } from '../../../token/endpoint/token-request.ts';
import { findMissingScopes } from '../../../token/endpoint/token-response.ts';
import { chooseRefreshDelayMs } from '../../../token/source/refresh-schedule.ts';
import type { TokenRequestFailure, TokenRequestResult } from '../../../token/endpoint/token-response.ts';
import { findAssertionSigning } from '../../../token/client/client-authentication.ts';
import { formatSecond } from '../clock-skew.ts';
import type { NameSetting, CheckFinding } from '../step-runner.ts';

export interface TokenResponseHead {
  readonly status: number;
  readonly contentType: string;
  /** `WWW-Authenticate`; empty without one. */
  readonly challenge: string;
}

export interface TokenCheckContext {
  readonly url: string;
  readonly nameSetting: NameSetting;
  readonly auth: Pick<AuthConfig, 'method' | 'assertionGrant' | 'grantType' | 'audience' | 'scope' | 'resource'>;
  readonly isDiscovered: boolean;
  readonly head: TokenResponseHead | undefined;
  /** After a 404: the URL that was probably meant, because the path repeats itself. Default: it does not. */
  readonly meantUrl?: URL | undefined;
  /** After a 404: what the metadata of the same origin name. Default: none were found. */
  readonly published?: PublishedEndpoint | undefined;
}

/** A token endpoint that a server publishes (RFC 8414, OpenID Connect Discovery 1.0). */
export interface PublishedEndpoint {
  readonly metadataUrl: URL;
  readonly issuer: string;
  readonly tokenUrl: URL;
}

type GrantedToken = Extract<TokenRequestResult, { kind: 'ok' }>;

const SHORT_LIFETIME_MS = 60_000;
const LONG_LIFETIME_MS = 24 * 3_600_000;
const LONGER_ADVICE =
  'ask the partner for a longer lifetime: it is also the longest outage of the token endpoint without effect';
const SHORTER_ADVICE = 'ask the partner for a shorter lifetime: a stolen token can be used that long';

export function evaluateTokenFailure(response: TokenRequestFailure, context: TokenCheckContext): CheckFinding {
  const { head, url, isDiscovered, nameSetting } = context;
  const where = isDiscovered
    ? nameSetting('auth.issuer')
    : `${nameSetting('auth.url')} and ${nameSetting('auth.tokenPath')}`;
  const fail = (advice: string, detail = response.detail): CheckFinding => ({ outcome: 'fail', detail, advice });
  if (ASKS_FOR_DPOP.test(`${response.detail}, ${head?.challenge ?? ''}`)) return fail(DPOP_ADVICE);
  if (response.kind === 'rejected' && response.error !== undefined)
    return fail(adviseOnRejection(response.error, response.detail, context));
  if (response.kind === 'unavailable' && response.error !== undefined)
    return fail(response.error === 'slow_down' ? RATE_ADVICE : FAULT_ADVICE);
  if (head === undefined) return fail(`see the steps before this one, and check ${where}`);
  if (head.status === 404) {
    // What follows is the advice of the running sidecar.
    const detail = response.detail.replace(/: (?:check|set) auth\.url .*$/s, '');
    return fail(
      `there is no token endpoint at this path: ${adviseOnPath(context, where)}`,
      `POST ${url} returned 404${detail.includes(' and the error ') ? ` (${detail})` : ''}`,
    );
  }
  if (/\bhtml\b/i.test(head.contentType))
    return fail(
      `this is a login page, a proxy or a maintenance page, not a token endpoint: check ${where}`,
      `POST ${url} returned ${head.status} and a web page (HTML)`,
    );
  if (head.status === 401 && !API_KEY.test(response.detail)) return fail(adviseByError('invalid_client', context));
  return fail(adviseByStatus(head.status, where, nameSetting));
}

/** A published endpoint is certain, a repetition only likely. */
function adviseOnPath({ nameSetting, meantUrl, published }: TokenCheckContext, where: string): string {
  const repeated = meantUrl === undefined ? '' : 'the path of the token endpoint is there twice; ';
  if (published === undefined)
    return meantUrl === undefined ? `check ${where}` : repeated + describeTokenUrlSettings(meantUrl, nameSetting);
  const { metadataUrl, issuer, tokenUrl } = published;
  const found = `${repeated}${maskQuery(metadataUrl)} names ${maskQuery(tokenUrl)}: `;
  if (tokenUrl.origin !== metadataUrl.origin)
    return `${found}another server; if the partner confirms it, set ${nameSetting('auth.issuer')} to ${issuer} instead of ${where}`;
  return found + describeTokenUrlSettings(tokenUrl, nameSetting);
}

const RATE_ADVICE = 'the server limits token requests: wait, and find out who else uses this client';
const FAULT_ADVICE = 'the server has a fault: try again later, then ask its operator';

function adviseByStatus(status: number, where: string, nameSetting: NameSetting): string {
  if (status === 429) return RATE_ADVICE;
  if (status >= 500) return FAULT_ADVICE;
  if (status >= 300 && status < 400) return `redirects are not followed: set the new address in ${where}`;
  if (status === 200 || status === 201)
    return `set ${nameSetting('auth.tokenField')} if the token has another name in the response; otherwise it is not from a token endpoint: check ${where}, and ask the operator`;
  if (status === 400 || status === 415 || status === 422)
    return `the server expects another form of request: compare ${nameSetting('auth.bodyFormat')}, ${nameSetting('auth.grantType')} and ${nameSetting('auth.extraParameters')} with its documentation; or it is not a token endpoint: check ${where}`;
  const key = `set ${nameSetting('auth.extraHeaders')} if a gateway expects a key in a header field; otherwise`;
  return `the response is not from a token endpoint but probably from something in front of it: ${key} check ${where}, and ask the operator`;
}

/** As gateways write that a field with a key is missing. */
const API_KEY = /\b(?:api|subscription)[ _-]?key\b/i;
/** As servers write that `client_id` or `client_secret` is not in the body. */
const LACKS_CLIENT =
  /client[ _]?(?:id|secret|credentials)\b.{0,60}(?:missing|required|not (?:present|found|provided)|empty)|(?:missing|requires?|no)\b.{0,40}\bclient[ _]?(?:id|secret|credentials)/i;

/** RFC 9449 §5, §8: an error, the type of the token, or a challenge. */
const ASKS_FOR_DPOP = /"(?:use_dpop_nonce|invalid_dpop_proof|dpop)"|\bDPoP proof\b|, DPoP\b/i;
const DPOP_ADVICE =
  'the server asks for DPoP (RFC 9449), which is not supported: ask the partner for a client that gets plain bearer tokens';

function adviseOnRejection(error: string, detail: string, context: TokenCheckContext): string {
  const { nameSetting, auth } = context;
  const signing = findAssertionSigning(auth);
  const certificate = nameSetting('auth.certificateFile');
  // Entra finds the key of an assertion by x5t, x5t#S256 or kid.
  if (detail.includes('AADSTS700027'))
    return signing?.certificateFile === undefined && signing?.keyId === undefined
      ? `the assertion does not name its key: set ${certificate} to the certificate that is registered with the application (or ${nameSetting('auth.keyId')} to its thumbprint)`
      : `the server does not know the key that the assertion names: register the certificate in ${certificate} with the application, or set the one that is registered, with its key`;
  if (auth.method.name === 'client_secret_basic' && LACKS_CLIENT.test(detail))
    return `the server reads the client from the body of the request: set ${nameSetting('auth.method')} to client_secret_post`;
  if (describeMissingTarget(error, auth) !== undefined)
    return `ask the partner what to request, and set ${nameSetting('auth.audience')}, ${nameSetting('auth.scope')} or ${nameSetting('auth.resource')}${auth.assertionGrant === undefined ? '' : `, or correct the claim scope in ${nameSetting('auth.assertionClaims')}`}`;
  if (error === 'invalid_grant' && auth.assertionGrant !== undefined)
    return `the server does not accept the assertion: compare ${nameSetting('auth.clientId')} (iss), ${nameSetting('auth.assertionClaims')} (sub and others) and ${nameSetting('auth.assertionAudience')} (aud) with what it expects, and the key in ${nameSetting('auth.privateKeyFile')} with the one it knows`;
  return adviseByError(error, context);
}

/** What to do about an OAuth error. A map, since the error is any text of the server. */
const ADVICE_BY_ERROR = new Map(
  Object.entries<(context: TokenCheckContext) => string>({
    invalid_client: adviseOnInvalidClient,
    invalid_scope: ({ nameSetting, auth }) =>
      auth.assertionGrant === undefined
        ? `change ${nameSetting('auth.scope')}, or ask the partner to grant these scopes to the client`
        : `correct ${nameSetting('auth.scope')}, or the claim scope in ${nameSetting('auth.assertionClaims')} where the server reads it from the JWT, or ask the partner to grant these scopes`,
    invalid_target: ({ nameSetting }) =>
      `check ${nameSetting('auth.resource')} and ${nameSetting('auth.audience')} character by character`,
    access_denied: ({ nameSetting }) =>
      `ask the partner to give this client access to the API in ${nameSetting('auth.audience')}`,
    unauthorized_client: ({ auth }) =>
      `ask the partner to allow the grant ${auth.grantType} for this client, with the requested audience and scope`,
    unsupported_grant_type: ({ nameSetting }) =>
      `the server does not support the grant there: check ${nameSetting('auth.grantType')}, ${nameSetting('auth.url')} and ${nameSetting('auth.tokenPath')}`,
    invalid_request: (context) =>
      `a parameter is missing or not allowed: check ${context.nameSetting('auth.audience')}, ${context.nameSetting('auth.scope')} and ${context.nameSetting('auth.extraParameters')}${adviseOnEncoding(context)}`,
  }),
);

function adviseByError(error: string, context: TokenCheckContext): string {
  return ADVICE_BY_ERROR.get(error)?.(context) ?? 'ask the partner what this error means for the client';
}

function adviseOnInvalidClient(context: TokenCheckContext): string {
  const { nameSetting, auth } = context;
  const { name: method } = auth.method;
  if (method === 'client_assertion')
    return `the server does not accept this assertion for the client in ${nameSetting('auth.clientId')}: compare issuer, subject and audience in the step "assertion" character by character with what it trusts`;
  const expected = `with what you were given, and ask which ${nameSetting('auth.method')} it expects`;
  if (method === 'none')
    return `the server does not accept what identifies the client: compare ${nameSetting('auth.extraParameters')} and ${nameSetting('auth.extraHeaders')} ${expected}`;
  const compared = `${nameSetting('auth.clientId')} and ${nameCredentialSettings(method, nameSetting)}`;
  return `the server does not know this client or its proof (${method}): compare ${compared} ${expected}${adviseOnEncoding(context)}`;
}

/** Servers that follow RFC 6749 strictly decode the credentials, and fail at a percent sign that begins no escape. */
function adviseOnEncoding({ nameSetting, auth }: TokenCheckContext): string {
  const form = `; with a secret that has "+" or "%" in it try ${nameSetting('auth.basicEncoding')} form`;
  return auth.method.name === 'client_secret_basic' ? form : '';
}

function nameCredentialSettings(method: string, nameSetting: NameSetting): string {
  if (method === 'private_key_jwt') return `${nameSetting('auth.privateKeyFile')} and ${nameSetting('auth.keyId')}`;
  return nameSetting(method === 'tls_client_auth' ? 'auth.tlsCertificateFile' : 'auth.clientSecret');
}

export function evaluateScope(
  requested: string | undefined,
  { scope }: GrantedToken,
  nameSetting: NameSetting,
): CheckFinding {
  if (scope === undefined) return { outcome: 'ok', detail: 'not stated by the server, so unknown' };
  const missing = findMissingScopes(requested, scope);
  if (missing.length === 0) return { outcome: 'ok', detail: `granted: ${scope}` };
  const detail = `not granted: ${missing.join(' ')}; granted: ${scope}`;
  const advice = `ask the partner to grant the missing scopes to the client, or remove them from ${nameSetting('auth.scope')}`;
  return { outcome: 'fail', detail, advice };
}

export function evaluateLifetime(
  { lifetimeMs, lifetimeFault }: GrantedToken,
  nowWall: number,
  nameSetting: NameSetting,
): CheckFinding {
  const [soonest, latest] = [chooseRefreshDelayMs(lifetimeMs, 0), chooseRefreshDelayMs(lifetimeMs, 1)];
  const detail = `valid for ${formatSeconds(lifetimeMs)} (until ${formatSecond(nowWall + lifetimeMs)}), renewed after ${formatSeconds(soonest)} to ${formatSeconds(latest)}`;
  if (lifetimeFault !== undefined) {
    const advice = `set ${nameSetting('auth.expiresInField')} if the lifetime has another name in the response; otherwise ask the partner how long a token is valid, and set ${nameSetting('auth.defaultLifetimeMs')} to less`;
    return { outcome: 'warn', detail: `the response has ${lifetimeFault}, so taken to be ${detail}`, advice };
  }
  if (lifetimeMs < SHORT_LIFETIME_MS) return { outcome: 'warn', detail, advice: LONGER_ADVICE };
  return lifetimeMs <= LONG_LIFETIME_MS
    ? { outcome: 'ok', detail }
    : { outcome: 'warn', detail, advice: SHORTER_ADVICE };
}

function formatSeconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}
