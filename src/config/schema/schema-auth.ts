/** Settings of token requests and of the forward proxy. */
import { claimNameFault, extraHeaderNameFault, extraParameterNameFault } from './formats/credentials.ts';
import { headerValueFault, scope, secret, secretFault } from './formats/credentials.ts';
import { matching, oneOf, text, wholeNumber } from './formats/formats.ts';
import { noProxy, proxyUrl } from './formats/proxy.ts';
import { map, secretMap } from './formats/one-or-many.ts';
import { fileSetting, NO_ENTRIES, setting, settingWithoutDefault } from './setting.ts';
import { audience, baseUrl, resource, urlPath } from './formats/url.ts';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** Where tokens are requested. */
const server = {
  url: settingWithoutDefault(baseUrl('https://login.example.com'), {
    doc: 'Base URL of the authorization server; auth.tokenPath is appended. Either this or auth.issuer is required, except by auth.method static.',
  }),
  tokenPath: setting(urlPath, '/oauth/token', {
    doc: 'Path of the token endpoint below auth.url. It may have a query, whose values are not shown; a secret belongs to auth.extraParameters.',
  }),
  issuer: settingWithoutDefault(baseUrl('https://login.example.com'), {
    doc: 'Issuer whose published metadata names the token endpoint (RFC 8414, OpenID Connect Discovery), exactly as the server writes it; an alternative to auth.url.',
  }),
};

/** Who the client is. */
const client = {
  method: setting(
    oneOf([
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
      'client_assertion',
      'tls_client_auth',
      'none',
      'static',
    ]),
    'client_secret_basic',
    {
      doc: 'How the client authenticates. client_secret_basic and client_secret_post send the secret, private_key_jwt signs a short-lived assertion (RFC 7523), client_assertion sends one that another party has issued (auth.assertionFile), tls_client_auth relies on the client certificate (RFC 8705), none sends what auth.extraParameters holds and nothing else. static: no token is requested, auth.tokenFile holds it, unless upstream.query has a key in a file.',
    },
  ),
  clientId: settingWithoutDefault(secret('a client id: text without control characters', secretFault), {
    doc: 'The client identifier. Either this or auth.clientIdFile is required, except by auth.method none and static.',
    env: 'SIDECAR_CLIENT_ID',
    sensitive: true,
  }),
  clientIdFile: fileSetting({
    doc: 'File that holds the client identifier; one trailing line end is dropped. Read again when needed.',
    env: 'SIDECAR_CLIENT_ID_FILE',
  }),
  clientSecret: settingWithoutDefault(secret('a client secret: text without control characters', secretFault), {
    doc: 'The client secret. The methods client_secret_basic and client_secret_post require either this or auth.clientSecretFile; a file is the safer of the two.',
    env: 'SIDECAR_CLIENT_SECRET',
    sensitive: true,
  }),
  clientSecretFile: fileSetting({
    doc: 'File that holds the client secret; one trailing line end is dropped. Read again when needed.',
    env: 'SIDECAR_CLIENT_SECRET_FILE',
  }),
  basicEncoding: setting(oneOf(['raw', 'form']), 'raw', {
    doc: 'For client_secret_basic: raw joins id and secret unchanged; form encodes both first, as in RFC 6749 section 2.3.1.',
  }),
  privateKeyFile: fileSetting({
    doc: 'For private_key_jwt and the grant type jwt-bearer: file of the private key, PEM or one JWK. Read again when needed.',
  }),
  keyId: settingWithoutDefault(text('a key id'), {
    doc: 'With auth.privateKeyFile: the kid of the assertion. Default: that of the JWK, if it has one.',
  }),
  signingAlgorithm: settingWithoutDefault(
    oneOf(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']),
    {
      doc: 'With auth.privateKeyFile: how the assertion is signed. Default: the alg of the JWK, else RS256 for an RSA key, ES256, ES384 or ES512 by curve, EdDSA for Ed25519.',
    },
  ),
  certificateFile: fileSetting({
    doc: 'With auth.privateKeyFile: PEM file of the certificate of that key. Its thumbprints become x5t and x5t#S256 of the assertion, by which Microsoft Entra and AD FS find it. Read again when needed.',
  }),
  assertionAudience: setting(text('token_endpoint, issuer or another audience'), 'token_endpoint', {
    doc: 'With auth.privateKeyFile: the aud of the assertion: token_endpoint for the URL of the token endpoint, issuer for auth.issuer, or any other text as it is.',
  }),
  assertionClaims: setting(map('claims by name', '{"sub":"service@example.com"}', claimNameFault), NO_ENTRIES, {
    doc: 'For the grant type jwt-bearer: further claims of the assertion, sub among them. Default of sub: the client id.',
  }),
  assertionFile: fileSetting({
    doc: 'For client_assertion: file of a JWT that another party issues and renews, such as a projected service-account token of Kubernetes. Read for each token request; one trailing line end is dropped.',
  }),
  assertionFileAudience: settingWithoutDefault(text('an audience'), {
    doc: 'For client_assertion: the one audience (aud) that the JWT must have, character by character, such as api://AzureADTokenExchange or the issuer of a Keycloak realm. A JWT for another audience is not sent.',
  }),
  tlsCertificateFile: fileSetting({
    doc: 'PEM file of the client certificate, with its chain, that is offered to the token endpoint. Required by tls_client_auth, possible with every method. Read again when needed.',
  }),
  tlsKeyFile: fileSetting({ doc: 'PEM file of the private key of auth.tlsCertificateFile, not encrypted.' }),
};

export const auth = {
  ...server,
  ...client,
  audience: settingWithoutDefault(audience, {
    doc: 'The audience to request a token for, usually a URL; each of several is sent as a field of its own.',
    env: 'SIDECAR_AUDIENCE',
  }),
  scope: settingWithoutDefault(scope, {
    doc: 'The scopes to request a token for, separated by one blank.',
    env: 'SIDECAR_SCOPE',
  }),
  resource: settingWithoutDefault(resource, {
    doc: 'The resource to request a token for (RFC 8707), an absolute URI; each of several is sent as a field of its own.',
  }),
  grantType: setting(
    matching(/^\P{Cc}*$/u, 'a grant type such as client_credentials; the empty text leaves the parameter out'),
    'client_credentials',
    {
      doc: 'The grant_type of the token request (RFC 6749). urn:ietf:params:oauth:grant-type:jwt-bearer sends an assertion signed with auth.privateKeyFile (RFC 7523 section 2.1). refresh_token sends that of auth.extraParameters; where the server replaces it at each use, auth.cacheFile keeps the newest. The empty text leaves the parameter out.',
    },
  ),
  bodyFormat: setting(oneOf(['form', 'json']), 'form', {
    doc: 'The body of the token request: form as in RFC 6749, or one JSON object of the same parameters, where several audiences or resources are an array.',
  }),
  extraParameters: setting(
    secretMap('names with texts', '{"tenant":"a"}', extraParameterNameFault, secretFault),
    NO_ENTRIES,
    {
      doc: 'Extra parameters of the token request, each a text or { file: PATH }. Their values are never shown. With auth.method none also client_id, client_secret and the like.',
      sensitive: true,
    },
  ),
  extraHeaders: setting(
    secretMap('names with texts', '{"x-api-key":"a"}', extraHeaderNameFault, headerValueFault),
    NO_ENTRIES,
    {
      doc: 'Extra header fields of the token request, each a text or { file: PATH }. Their values are never shown.',
      sensitive: true,
    },
  ),
  tokenField: setting(text('the name of a member'), 'access_token', {
    doc: 'The member of the token response that holds the token. If no member has exactly this name, dots separate the names of members of members.',
  }),
  expiresInField: setting(text('the name of a member'), 'expires_in', {
    doc: 'The member of the token response that holds the lifetime of the token, found as auth.tokenField.',
  }),
  expiresInUnit: setting(oneOf(['seconds', 'milliseconds']), 'seconds', {
    doc: 'The unit of auth.expiresInField. A number that would be more than 30 years is the instant of the end (Unix time): above 1e12 in milliseconds, else in seconds.',
  }),
  tokenFile: fileSetting({
    doc: 'For auth.method static: file of a token or API key that another program renews; with another upstream.tokenPrefix than Bearer any field value of printable ASCII. Read again when it changes, and after a 401; one trailing line end is dropped.',
  }),
  timeoutMs: setting(wholeNumber(1, HOUR_MS), 10_000, {
    doc: 'Longest time for one token request, from connecting to the last byte of the response; includes the request for the metadata of auth.issuer when it comes first.',
  }),
  defaultLifetimeMs: setting(wholeNumber(1000, YEAR_MS), 300_000, {
    doc: 'Lifetime of a token whose expires_in is absent, below 1 or not a number of seconds. Such a response is a warning.',
  }),
  userAgent: settingWithoutDefault(
    secret('a product such as billing/1.0: printable ASCII without a blank at either end', headerValueFault),
    {
      doc: 'User-Agent of token requests and of requests for the metadata of auth.issuer; calls of the API keep their own. Default: bearer-sidecar/ and the version.',
    },
  ),
  caFile: fileSetting({
    doc: 'PEM file of the certificate authorities to trust for the token endpoint only. Default: upstream.caFile.',
  }),
  cacheFile: fileSetting({
    doc: 'File that keeps the newest access token, so that a restart has a token while the token endpoint is down. Encrypted with a key derived from the client secret or the private key; written with mode 0600 in a directory that must be writable. Not possible with client_assertion, none and static, which have no such key (none has one with the grant types jwt-bearer and refresh_token). Also keeps the refresh token of a server that replaces it.',
  }),
  invalidationCooldownMs: setting(wholeNumber(1, 300_000), 5000, {
    doc: 'Shortest time between two refreshes caused by a 401 of the API; doubles up to 300000 while new tokens are refused too.',
  }),
  settleMs: setting(wholeNumber(0, 60_000), 2000, {
    doc: 'Longest time that a request waits for an access token that the API accepts, while the API refuses the two newest with 401 (a new token may be accepted only some seconds after its issue). 0: no wait.',
  }),
};

export const SERVER_SETTINGS = Object.keys(server) as (keyof typeof server)[];

/** They are inherited together or not at all. */
export const CLIENT_SETTINGS = [...Object.keys(client), 'tokenFile'] as (keyof typeof client | 'tokenFile')[];

export const egress = {
  proxy: settingWithoutDefault(proxyUrl, {
    doc: 'Forward proxy through which the API and the authorization server are reached, by CONNECT; a password in it is a secret. none: no proxy, even if the environment names one. Not set: HTTPS_PROXY, and HTTP_PROXY for http: destinations. Loopback is never proxied.',
  }),
  httpProxy: settingWithoutDefault(proxyUrl, {
    doc: 'As egress.proxy, for http: destinations only. Default: egress.proxy.',
  }),
  noProxy: setting(noProxy, [], {
    doc: 'Destinations without a proxy: names (with their subdomains), .suffixes (subdomains only), IP addresses, networks such as 10.0.0.0/8, each with or without a port, or *. Not set: NO_PROXY.',
  }),
  caFile: fileSetting({
    doc: 'PEM file of the certificate authorities to trust for an https: proxy only. Default: upstream.caFile.',
  }),
};
