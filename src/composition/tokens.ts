/**
 * Builds the token source of one credential: a chain of fetchers, each around the next. A token request goes token source →
 * cache file → choice of credentials → shared store of the fleet → token endpoint, and its result returns the same way.
 */
import type { AuthConfig } from '../config/config.ts';
import type { ProxySelector } from '../platform/egress/proxy-selector.ts';
import { canCredentialChange, hasKeyMaterial } from '../token/client/client-authentication.ts';
import type { ClientCredential, ClientCredentialReadResult } from '../token/client/client-authentication.ts';
import type { Log } from '../telemetry/log/log.ts';
import { withKnownLifetimes } from '../token/endpoint/assumed-lifetime.ts';
import { RotatingTokenFetcher } from '../token/client/rotating-token-fetcher.ts';
import { TokenEndpoint } from '../token/endpoint/token-endpoint.ts';
import type { SendTokenRequest, TokenFetcher, TokenPartOptions } from '../token/source/token-fetcher.ts';
import { FileTokenSource } from '../token/source/file-token-source.ts';
import { HeldTokenSource, type TokenSourceOptions } from '../token/source/token-source.ts';
import type { TokensInUse } from '../platform/tokens-in-use.ts';
import type { SharedTokenStore } from '../token/store/shared-token-store.ts';
import { REFRESH_TOKEN, RefreshTokens } from '../token/store/refresh-tokens.ts';
import { shareTokenRequests } from '../token/store/shared-token-requests.ts';
import { CachedTokenFetcher } from '../token/store/token-cache.ts';
import type { TokenSource } from '../token/token.ts';

export interface TokensOptions extends TokenPartOptions, Pick<TokenSourceOptions, 'headerFault'> {
  readonly auth: AuthConfig;
  /** The header fields in which the routes send the token, as in the binding of a sealed token. */
  readonly tokenHeaders: readonly string[];
  readonly egress: ProxySelector;
  /** Where the replicas of a fleet share tokens; undefined without a fleet. */
  readonly tokenStore: SharedTokenStore | undefined;
  /** Called with each secret of the token request and each assertion that is read, the first time and after a change. */
  readonly registerSecret: Log['registerSecret'];
  /** Gets each token before it is used, and masks them in texts of the authorization server. */
  readonly tokensInUse: TokensInUse;
}

export function createTokens(options: TokensOptions): TokenSource {
  const { credential, auth, egress, tokensInUse, headerFault, clock, random, observe } = options;
  const { endpoint: address } = auth;
  const onToken = (value: string): void => tokensInUse.add(credential, value);
  const part: TokenPartOptions = { credential, clock, random, observe };
  if (address.kind === 'file') return new FileTokenSource({ ...part, onToken, headerFault, path: address.path });
  const endpoint = new TokenEndpoint({
    ...auth,
    endpoint: address,
    tokenHeaders: options.tokenHeaders,
    egress,
    maskTokens: tokensInUse.mask,
    clock,
    observe,
  });
  const refreshTokens = createRefreshTokens(endpoint, options);
  const request = createRequest(endpoint, refreshTokens, options);
  const read = readAndRedact(endpoint, options.registerSecret);
  const rotating = new RotatingTokenFetcher({ ...part, read, request });
  const fetcher = createCachedFetcher(rotating, endpoint, refreshTokens, options);
  const credentialWatch = canCredentialChange(auth) ? rotating : undefined;
  return new HeldTokenSource({ ...auth, ...part, onToken, headerFault, fetcher, credentialWatch, refreshTokens });
}

function readAndRedact(
  endpoint: TokenEndpoint,
  registerSecret: Log['registerSecret'],
): () => Promise<ClientCredentialReadResult> {
  let version: string | undefined;
  let assertion: string | undefined;
  return async () => {
    const client = await endpoint.readCredential();
    if (client.kind === 'unreadable') return client;
    // A private key is never sent, and is too long to be searched for in every line.
    if (client.version !== version) for (const secret of client.sentSecrets) registerSecret(secret, client.clientId);
    version = client.version;
    if (client.readAssertion === undefined) return client;
    const authenticate: ClientCredential['authenticate'] = async (target) => {
      const authentication = await client.authenticate(target);
      if (authentication.kind === 'unreadable') return authentication;
      const { client_assertion: newest } = Object.fromEntries(authentication.parameters);
      // It is renewed often: the log keeps the newest ones, and forgets no other secret for them.
      if (newest !== undefined && newest !== assertion) registerSecret(newest, undefined, assertion);
      assertion = newest;
      return authentication;
    };
    return { ...client, authenticate };
  };
}

/** Undefined for another grant. */
function createRefreshTokens(
  endpoint: TokenEndpoint,
  { auth, credential, tokenStore, tokensInUse, registerSecret, observe }: TokensOptions,
): RefreshTokens | undefined {
  if (auth.grantType !== REFRESH_TOKEN) return undefined;
  const unkept = auth.cacheFile === undefined ? 'auth.cacheFile is not set' : undefined;
  return new RefreshTokens({
    // A request that is cut off may have used up the token.
    send: (client) => endpoint.request(client, new AbortController().signal),
    onReceived: (value, replaced) => {
      registerSecret(value, undefined, replaced);
      tokensInUse.add(`refresh token of ${credential}`, value);
    },
    lossCause: tokenStore === undefined ? unkept : 'the replicas of a fleet do not share it',
    warn: (message) => observe({ kind: 'warning', message: `${credential}: ${message}` }),
  });
}

/** Inside the choice of credentials: replicas with the same credentials share, whether old or new. */
function createRequest(
  endpoint: TokenEndpoint,
  refreshTokens: RefreshTokens | undefined,
  { credential, auth, tokenStore: store, clock, random, observe }: TokensOptions,
): SendTokenRequest {
  const request = withKnownLifetimes(
    (client: ClientCredential, signal: AbortSignal) =>
      refreshTokens?.request(client) ?? endpoint.request(client, signal),
    { ...auth, credential, clock, observe },
  );
  if (store === undefined) return request;
  if (!hasKeyMaterial(auth)) {
    const message = `${credential}: replicas do not share the token, since auth.method ${auth.method.name} has neither a secret nor a key to encrypt it with`;
    observe({ kind: 'warning', message });
  }
  return shareTokenRequests({
    ...{ store, clock, random, observe },
    sendRequest: request,
    identify: (client) => endpoint.identify(client),
    peerWaitMs: auth.timeoutMs,
  });
}

function createCachedFetcher(
  fetcher: TokenFetcher,
  endpoint: TokenEndpoint,
  refreshTokens: RefreshTokens | undefined,
  { auth: { cacheFile: path }, clock, observe }: TokensOptions,
): TokenFetcher {
  if (path === undefined) return fetcher;
  const readIdentity = async () => {
    const client = await endpoint.readCredential();
    return client.kind === 'unreadable' ? undefined : endpoint.identify(client);
  };
  return new CachedTokenFetcher(fetcher, { path, readIdentity, refreshTokens, clock, observe });
}
