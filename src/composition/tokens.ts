/**
 * Builds the token source of one credential: a chain of fetchers, each around the next. A token request goes token source →
 * cache file → choice of credentials → shared store of the fleet → token endpoint, and its result returns the same way.
 */
import type { AuthConfig } from '../config/config.ts';
import type { ProxySelector } from '../platform/egress/proxy-selector.ts';
import { canCredentialChange, hasKeyMaterial } from '../token/client/client-authentication.ts';
import type { ClientCredential, ClientCredentialReadResult } from '../token/client/client-authentication.ts';
import { withKnownLifetimes } from '../token/endpoint/assumed-lifetime.ts';
import { RotatingTokenFetcher } from '../token/client/rotating-token-fetcher.ts';
import { TokenEndpoint } from '../token/endpoint/token-endpoint.ts';
import type { SendTokenRequest, TokenFetcher, TokenPartOptions } from '../token/source/token-fetcher.ts';
import { FileTokenSource } from '../token/source/file-token-source.ts';
import { HeldTokenSource, type TokenSourceOptions } from '../token/source/token-source.ts';
import type { Secrets } from '../platform/secrets.ts';
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
  /** Gets each secret of the client and each assertion when it is read, and each token before it is used; masks texts of servers. */
  readonly secrets: Secrets;
}

export function createTokens(options: TokensOptions): TokenSource {
  const { credential, auth, egress, secrets, headerFault, clock, random, observe } = options;
  const { endpoint: address } = auth;
  const onToken = (value: string): void => secrets.addToken(value, `token of ${credential}`);
  const part: TokenPartOptions = { credential, clock, random, observe };
  if (address.kind === 'file')
    return new FileTokenSource({
      ...part,
      onToken,
      headerFault,
      path: address.path,
      tokenPrefixes: auth.tokenPrefixes,
    });
  const endpoint = new TokenEndpoint({
    ...auth,
    endpoint: address,
    tokenHeaders: options.tokenHeaders,
    egress,
    maskSecrets: secrets.mask,
    clock,
    observe,
  });
  const refreshTokens = createRefreshTokens(endpoint, options);
  const request = createRequest(endpoint, refreshTokens, options);
  const read = readAndRegister(endpoint, options);
  const rotating = new RotatingTokenFetcher({ ...part, read, request });
  const fetcher = createCachedFetcher(rotating, endpoint, refreshTokens, options);
  const credentialWatch = canCredentialChange(auth) ? rotating : undefined;
  return new HeldTokenSource({ ...auth, ...part, onToken, headerFault, fetcher, credentialWatch, refreshTokens });
}

function readAndRegister(
  endpoint: TokenEndpoint,
  { credential, secrets }: TokensOptions,
): () => Promise<ClientCredentialReadResult> {
  return async () => {
    const client = await endpoint.readCredential();
    if (client.kind === 'unreadable') return client;
    for (const [index, secret] of [client.keyMaterial ?? [], client.sentSecrets].flat().entries())
      secrets.add(secret, `secret ${String(index)} of ${credential}`);
    if (client.readAssertion === undefined) return client;
    const authenticate: ClientCredential['authenticate'] = async (target) => {
      const authentication = await client.authenticate(target);
      if (authentication.kind === 'unreadable') return authentication;
      const { client_assertion: newest } = Object.fromEntries(authentication.parameters);
      if (newest !== undefined) secrets.addToken(newest, `assertion of ${credential}`);
      return authentication;
    };
    return { ...client, authenticate };
  };
}

/** Undefined for another grant. */
function createRefreshTokens(
  endpoint: TokenEndpoint,
  { auth, credential, tokenStore, secrets, observe }: TokensOptions,
): RefreshTokens | undefined {
  if (auth.grantType !== REFRESH_TOKEN) return undefined;
  const unkept = auth.cacheFile === undefined ? 'auth.cacheFile is not set' : undefined;
  return new RefreshTokens({
    // A request that is cut off may have used up the token.
    send: (client) => endpoint.request(client, new AbortController().signal),
    onReceived: (value) => secrets.addToken(value, `refresh token of ${credential}`),
    lossCause: tokenStore === undefined ? unkept : 'the replicas of a fleet do not share it',
    warn: (message) => observe({ kind: 'warning', message: `${credential}: ${message}` }),
  });
}

/** Inside the choice of credentials: replicas with the same credentials share, whether old or new. */
function createRequest(
  endpoint: TokenEndpoint,
  refreshTokens: RefreshTokens | undefined,
  { credential, auth, secrets, tokenStore: store, clock, random, observe }: TokensOptions,
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
  const share = shareTokenRequests({
    store,
    clock,
    random,
    observe,
    sendRequest: request,
    identify: (client) => endpoint.identify(client),
    peerWaitMs: auth.timeoutMs,
  });
  return async (...call) => {
    const result = await share(...call);
    // Another replica may know fewer secrets.
    return 'detail' in result ? { ...result, detail: secrets.mask(result.detail) } : result;
  };
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
