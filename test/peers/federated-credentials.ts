/**
 * Stubs, not the products: they follow what Microsoft and Keycloak publish about assertions of a foreign issuer, as far as a client
 * can notice it. Entra ID: a federated identity credential matches issuer, subject and audience exactly, with the errors of its
 * reference (AADSTS…). Keycloak 26: a client with the authenticator `federated-jwt` and an identity provider for Kubernetes.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { errors, jwtVerify } from 'jose';
import type { JWTPayload } from 'jose';
import type { AssertionIssuer } from '../support/assertion-issuer.ts';
import { ASSERTION_SUBJECT } from '../support/assertion-issuer.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { registerSecret } from '../support/secrets.ts';

const ENTRA_TENANT = '0aa1c2d3-0000-4000-8000-0123456789ab';
const KEYCLOAK_REALM = 'partners';
const CLIENT_ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

export interface FederatedStub extends AsyncDisposable {
  readonly issuer: string;
  readonly tokenUrl: string;
  /** What the server expects as the audience of an assertion. */
  readonly audience: string;
  /** Everything that was received, discovery included. */
  readonly server: RecordingUpstream;
  /** The forms of the token requests. */
  readonly forms: () => readonly URLSearchParams[];
}

export interface TrustedClient {
  readonly clientId: string;
  readonly trusted: AssertionIssuer;
  /** Of the tokens it gives, seconds. Default 3600. */
  readonly expiresIn?: number;
}

/** The status and the JSON of an error, or nothing. */
type Fault = readonly [status: number, body: Readonly<Record<string, unknown>>] | undefined;

export function startEntraStub(client: TrustedClient): Promise<FederatedStub> {
  const audience = 'api://AzureADTokenExchange';
  const paths = { issuer: `/${ENTRA_TENANT}/v2.0`, token: `/${ENTRA_TENANT}/oauth2/v2.0/token` };
  return startStub(client, paths, () => audience, evaluateAsEntra);

  async function evaluateAsEntra(form: URLSearchParams): Promise<Fault> {
    const clientId = form.get('client_id');
    if (clientId === null) return entraFault(400, 'invalid_request', 900144, "must contain 'client_id'");
    if (clientId !== client.clientId)
      return entraFault(400, 'unauthorized_client', 700016, `Application '${clientId}' was not found`);
    if (form.get('scope')?.endsWith('/.default') !== true)
      return entraFault(400, 'invalid_scope', 1002012, 'The scope must be a resource with /.default');
    if (form.get('client_assertion_type') !== CLIENT_ASSERTION_TYPE || !form.has('client_assertion'))
      return entraFault(401, 'invalid_client', 7000218, "must contain 'client_assertion' or 'client_secret'");
    const { payload, error } = await verify(form.get('client_assertion') ?? '', client.trusted);
    const unmatched = 'No matching federated identity record found for presented assertion';
    if (error instanceof errors.JWTExpired)
      return entraFault(401, 'invalid_client', 700024, 'Client assertion is not within its valid time range');
    if (error !== undefined) return entraFault(401, 'invalid_client', 50013, 'Assertion failed signature validation');
    if (payload.iss !== client.trusted.issuer)
      return entraFault(401, 'invalid_client', 700211, `${unmatched} issuer '${String(payload.iss)}'`);
    if (![payload.aud].flat().includes(audience))
      return entraFault(401, 'invalid_client', 700212, `${unmatched} audience '${String(payload.aud)}'`);
    if (payload.sub !== ASSERTION_SUBJECT)
      return entraFault(401, 'invalid_client', 700213, `${unmatched} subject '${String(payload.sub)}'`);
    return undefined;
  }
}

function entraFault(status: number, error: string, code: number, text: string): Fault {
  const trace = 'Trace ID: 0000aaaa-11bb-cccc-dd22-eeeeee333333';
  return [status, { error, error_description: `AADSTS${String(code)}: ${text}. ${trace}`, error_codes: [code] }];
}

export function startKeycloakStub(client: TrustedClient): Promise<FederatedStub> {
  const realm = `/realms/${KEYCLOAK_REALM}`;
  const paths = { issuer: realm, token: `${realm}/protocol/openid-connect/token` };
  return startStub(client, paths, (issuer) => issuer, evaluateAsKeycloak);

  async function evaluateAsKeycloak(form: URLSearchParams, issuer: string): Promise<Fault> {
    const { payload, error } = await verify(form.get('client_assertion') ?? '', client.trusted);
    const lifetime = (payload.exp ?? 0) - (payload.iat ?? 0);
    const isAccepted =
      error === undefined &&
      form.get('client_assertion_type') === CLIENT_ASSERTION_TYPE &&
      [null, client.clientId].includes(form.get('client_id')) &&
      payload.iss === client.trusted.issuer &&
      payload.sub === ASSERTION_SUBJECT &&
      [payload.aud].flat().join(' ') === issuer &&
      lifetime <= 3600;
    const description = 'Invalid client or Invalid client credentials';
    return isAccepted ? undefined : [401, { error: 'invalid_client', error_description: description }];
  }
}

interface VerifiedAssertion {
  readonly payload: JWTPayload;
  /** Undefined when the signature is right and the assertion is valid now. */
  readonly error: unknown;
}

async function verify(assertion: string, { publicKey }: AssertionIssuer): Promise<VerifiedAssertion> {
  try {
    return { payload: (await jwtVerify(assertion, publicKey)).payload, error: undefined };
  } catch (error) {
    return { payload: {}, error };
  }
}

async function startStub(
  { expiresIn = 3600 }: TrustedClient,
  paths: { readonly issuer: string; readonly token: string },
  audienceOf: (issuer: string) => string,
  evaluate: (form: URLSearchParams, issuer: string) => Promise<Fault>,
): Promise<FederatedStub> {
  const server = await startRecordingUpstream(async ({ path, method, body }, response) => {
    const issuer = server.url + paths.issuer;
    if (method === 'GET' && path === `${paths.issuer}/.well-known/openid-configuration`) {
      const token_endpoint = server.url + paths.token;
      const methods = ['client_secret_post', 'private_key_jwt', 'client_secret_basic'];
      send(response, 200, { issuer, token_endpoint, token_endpoint_auth_methods_supported: methods });
    } else if (method === 'POST' && path === paths.token) {
      const form = new URLSearchParams(body.toString());
      const fault =
        form.get('grant_type') === 'client_credentials'
          ? await evaluate(form, issuer)
          : ([400, { error: 'unsupported_grant_type' }] as const);
      if (fault === undefined) send(response, 200, createToken(expiresIn));
      else send(response, ...fault);
    } else response.writeHead(404).end();
  });
  const issuer = server.url + paths.issuer;
  return {
    issuer,
    tokenUrl: server.url + paths.token,
    audience: audienceOf(issuer),
    server,
    forms: () =>
      server.requests.filter(({ method }) => method === 'POST').map(({ body }) => new URLSearchParams(body.toString())),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function createToken(expiresIn: number): Readonly<Record<string, unknown>> {
  const value = randomBytes(24).toString('base64url');
  registerSecret('an access token', value);
  return { access_token: value, token_type: 'Bearer', expires_in: expiresIn };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
