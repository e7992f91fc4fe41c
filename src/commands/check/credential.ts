/** Checks one credential: the connection to its token endpoint, discovery, one token request, and its response. */
import type { AuthConfig, CredentialConfig, RequestingAuthConfig } from '../../config/config.ts';
import { formatSettingName } from '../../config/load/problems.ts';
import { adviseOnCause } from '../../platform/faults.ts';
import { maskQuery } from '../../platform/secret-redaction.ts';
import { describeAssertion, readJwtExpiry } from '../../token/client/assertion-claims.ts';
import { findAssertionSigning } from '../../token/client/client-authentication.ts';
import { readAssertionFile } from '../../token/client/assertion-file.ts';
import { TokenEndpoint } from '../../token/endpoint/token-endpoint.ts';
import { isRefreshTokenReplaced, REFRESH_TOKEN } from '../../token/store/refresh-tokens.ts';
import { readTokenFile } from '../../token/source/file-token-source.ts';
import { correctTokenUrl } from '../../token/endpoint/token-url.ts';
import type { TokenRequestFailure, TokenRequestResult } from '../../token/endpoint/token-response.ts';
import { evaluateSkew, formatSecond } from './clock-skew.ts';
import { findPublishedEndpoint } from './discover.ts';
import { evaluateTokenFailure, evaluateLifetime, evaluateScope } from './evaluate/evaluate-token.ts';
import type { TokenResponseHead } from './evaluate/evaluate-token.ts';
import { createSettingNamer, formatTarget } from './step-runner.ts';
import { StepRunner, type CheckFinding, type CheckStepName, type NameSetting, type StepResult } from './step-runner.ts';
import { observeConnections, type PartnerCheckContext } from './connection.ts';

/** A credential whose token is requested, and what its check uses. */
interface CredentialCheck extends PartnerCheckContext {
  readonly auth: RequestingAuthConfig;
  readonly nameSetting: NameSetting;
  readonly runner: StepRunner;
}

const STEPS_AFTER_TOKEN: readonly CheckStepName[] = ['scope', 'lifetime', 'clock'];

export async function checkCredential({ auth, name }: CredentialConfig, context: PartnerCheckContext) {
  const { endpoint } = auth;
  if (endpoint.kind === 'file') return checkTokenFile(endpoint.path, auth.tokenPrefixes, name, context);
  const nameSetting = createSettingNamer('credential', name);
  const runner = new StepRunner(formatTarget('token endpoint', name), context);
  const check = { ...context, auth: { ...auth, endpoint }, nameSetting, runner };
  if (!(await checkAssertion(check))) {
    runner.skip(['token', ...STEPS_AFTER_TOKEN], 'nothing is sent without a usable assertion');
    return { steps: runner.steps, token: undefined };
  }
  const requested = await runner.run('token', () => requestToken(check));
  if (requested === undefined) {
    runner.skip(STEPS_AFTER_TOKEN, 'there is no response');
    return { steps: runner.steps, token: undefined };
  }
  const { response, skewMs } = requested;
  if (response.kind === 'ok') {
    runner.record('scope', evaluateScope(auth.scope, response, nameSetting));
    runner.record('lifetime', evaluateLifetime(response, check.clock.wallNow(), nameSetting));
  } else runner.skip(['scope', 'lifetime'], 'there is no token');
  runner.record('clock', evaluateSkew(skewMs, findAssertionSigning(auth) !== undefined, check.clock.wallNow()));
  return { steps: runner.steps, token: response.kind === 'ok' ? response.value : undefined };
}

/** A token that another program writes into a file: whether it can be used, and when it ends, if it says so. */
async function checkTokenFile(
  path: string,
  tokenPrefixes: readonly string[],
  credential: string,
  check: PartnerCheckContext,
) {
  const runner = new StepRunner(formatTarget('token file', credential), check);
  const token = await runner.run('token', async () => {
    const reading = await readTokenFile(path, tokenPrefixes);
    const advice = `write the token into that file, or correct ${createSettingNamer('credential', credential)('auth.tokenFile')}`;
    if (reading.kind === 'unreadable') return { outcome: 'fail', detail: reading.detail, advice };
    check.secrets.addToken(reading.value);
    return { outcome: 'ok', detail: `${path}, ${reading.value.length} characters`, value: reading.value };
  });
  if (token !== undefined) runner.record('lifetime', evaluateTokenExpiry(readJwtExpiry(token), check.clock.wallNow()));
  return { steps: runner.steps, token };
}

function evaluateTokenExpiry(endWallAt: number | undefined, wallNow: number): CheckFinding {
  if (endWallAt === undefined) return { outcome: 'ok', detail: 'the token does not say when it ends' };
  const end = formatSecond(endWallAt);
  if (endWallAt > wallNow) return { outcome: 'ok', detail: `a JWT that is valid until ${end}` };
  const advice = 'ask who runs the program that renews the file why it has stopped';
  return { outcome: 'warn', detail: `a JWT that expired at ${end}`, advice };
}

/** Shows the claims of an assertion in a file, never the assertion; true without one. */
async function checkAssertion({ auth: { method }, nameSetting, runner, clock, secrets }: CredentialCheck) {
  if (method.name !== 'client_assertion') return true;
  const found = await runner.run('assertion', async () => {
    const reading = await readAssertionFile(method.file, clock.wallNow());
    if (reading.kind === 'unreadable') {
      const advice = `correct ${nameSetting('auth.assertionFile')} or ${nameSetting('auth.assertionFileAudience')}, or ask the issuer of the file for another one`;
      return { outcome: 'fail', detail: reading.detail, advice };
    }
    secrets.addToken(reading.assertion);
    return { outcome: 'ok', detail: `${method.file.path}: ${describeAssertion(reading.claims)}`, value: true };
  });
  return found === true;
}

/** Credentials that share the authority of the upstream: the setting of both hosts is named. */
function describeServer({ auth, nameSetting, sharedCaFile }: CredentialCheck) {
  const { caFile, clientCertificate, endpoint } = auth;
  const names = {
    address: nameSetting(endpoint.kind === 'url' ? 'auth.url' : 'auth.issuer'),
    ca: caFile === sharedCaFile ? formatSettingName('upstream.caFile') : nameSetting('auth.caFile'),
    certificate: nameSetting('auth.tlsCertificateFile'),
    groups: formatSettingName('upstream.tlsGroups'),
    limit: nameSetting('auth.timeoutMs'),
  };
  return { names, caFile, clientCertificate };
}

const REPLACED = 'not requested: auth.cacheFile keeps a newer refresh token, which a request would use up';
const USED_UP = 'obtained, but the server replaces refresh tokens at each use: the configured one is used up now';
const USED_UP_ADVICE =
  'configure the refresh token of a new authorization, with auth.cacheFile (SIDECAR_AUTH_CACHE_FILE), and start the sidecar without another check';

async function requestToken(
  check: CredentialCheck,
): Promise<StepResult<{ readonly response: TokenRequestResult; readonly skewMs: number | undefined }>> {
  const { auth, nameSetting, runner, signal, secrets } = check;
  const seen: SeenRequest = {};
  const endpoint = createEndpoint(check, seen);
  const client = await endpoint.readCredential();
  if (client.kind === 'unreadable') return { outcome: 'fail', detail: client.detail, advice: 'fix that file' };
  for (const secret of [client.keyMaterial ?? [], client.sentSecrets].flat()) secrets.add(secret);
  const configured = client.extraParameters[REFRESH_TOKEN];
  if (auth.grantType === REFRESH_TOKEN && (await isRefreshTokenReplaced(auth.cacheFile, configured)))
    return { outcome: 'warn', detail: REPLACED, advice: 'see `bearer-sidecar status` of the running sidecar' };
  const response = await endpoint.request(client, signal);
  if (signal.aborted) throw signal.reason;
  if (seen.isConnected === false) return { outcome: 'skip', detail: 'the token endpoint was not reached' };
  const { head, url } = seen;
  const isUnknown = url === undefined && auth.endpoint.kind === 'issuer' && seen.isConnected === true;
  if (response.kind !== 'ok' && isUnknown) {
    const advice = `check ${nameSetting('auth.issuer')}: it must be exactly the issuer in the server's metadata`;
    runner.record('discovery', { outcome: 'fail', detail: response.detail, advice });
    return { outcome: 'skip', detail: 'the token endpoint is not known' };
  }
  const value = { response, skewMs: seen.skewMs };
  if (response.kind !== 'ok') {
    const finding = await explainResponse(response, seen, check);
    return head === undefined ? finding : { ...finding, value };
  }
  secrets.addToken(response.value);
  if (response.refreshToken !== undefined && response.refreshToken !== configured)
    return { outcome: 'warn', detail: USED_UP, advice: USED_UP_ADVICE, value };
  const where = url === undefined ? '' : ` from ${maskQuery(url)}`;
  return { outcome: 'ok', detail: `obtained${where}${describeRequestForm(auth)}`, value };
}

async function explainResponse(
  response: TokenRequestFailure,
  { head, url, isConnected }: SeenRequest,
  check: CredentialCheck,
): Promise<CheckFinding> {
  const { auth, nameSetting } = check;
  const isDiscovered = auth.endpoint.kind === 'issuer';
  if (isConnected === undefined && response.kind === 'unavailable' && response.isUnsent !== true) {
    const advice = adviseOnCause('connect_timeout', describeServer(check).names);
    return { outcome: 'fail', detail: response.detail, advice };
  }
  const wrongUrl = head?.status === 404 && !isDiscovered ? url : undefined;
  return evaluateTokenFailure(response, {
    url: url === undefined ? '' : maskQuery(url),
    nameSetting,
    auth,
    isDiscovered,
    head,
    meantUrl: wrongUrl && correctTokenUrl(wrongUrl),
    published: wrongUrl && (await findPublishedEndpoint(wrongUrl, check)),
  });
}

/** What differs from RFC 6749 §4.4. */
function describeRequestForm({ grantType, bodyFormat }: AuthConfig): string {
  const named = grantType === '' ? 'without a grant type' : `grant type ${JSON.stringify(grantType)}`;
  const grant = grantType === 'client_credentials' ? '' : `, ${named}`;
  return bodyFormat === 'json' ? `${grant}, request in JSON` : grant;
}

/** What the token endpoint reports of one request. */
interface SeenRequest {
  /** Default: no connection has been opened or refused yet. */
  isConnected?: boolean;
  url?: URL;
  head?: TokenResponseHead;
  skewMs?: number;
}

function createEndpoint(check: CredentialCheck, seen: SeenRequest): TokenEndpoint {
  const { auth, egress, clock, runner } = check;
  const observe = observeConnections(runner, describeServer(check), check);
  return new TokenEndpoint({
    ...auth,
    egress,
    clock,
    observe: (event) => {
      if (event.kind === 'clock-compared') seen.skewMs = event.skewMs;
      if (event.kind !== 'warning') return;
      runner.record('discovery', { outcome: 'warn', detail: event.message, advice: METADATA_ADVICE });
    },
    onConnection: (...connection) => {
      seen.isConnected = !(connection[0] instanceof Error);
      observe(...connection);
    },
    onLocated: (url) => {
      seen.url = url;
      if (auth.endpoint.kind === 'issuer')
        runner.record('discovery', { outcome: 'ok', detail: `${auth.endpoint.issuer} names ${maskQuery(url)}` });
    },
    onResponseHead: ({ statusCode, headers }) => {
      const challenge = [headers['www-authenticate'] ?? []].flat().join(', ');
      seen.head = { status: statusCode, contentType: String(headers['content-type'] ?? ''), challenge };
    },
  });
}

const METADATA_ADVICE = 'compare auth.method with the methods that the server lists, or ask its operator';
