/**
 * A stub of a published shape (server-shapes.ts): checks each token request as the documentation of the product describes it, and responds in
 * the product's form. It is no test of the product itself.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordedRequest } from '../support/recording-upstream.ts';
import { registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import type { Refusal, RefusalCause, SecretMethod, ServerShape } from './server-shapes.ts';

export interface ShapeServer extends AsyncDisposable {
  readonly url: string;
  /** Access tokens, in order of issue. */
  readonly issued: readonly string[];
  /** What differed from the documented token request, one line each. */
  readonly faults: readonly string[];
  /** The id and the secret of each request, as the product decodes them, in order of arrival. */
  readonly received: readonly ReceivedClient[];
}

export interface ReceivedClient extends Credential {
  readonly method: SecretMethod;
}

/** A client with this id meets the server in that state. */
export function clientIdFor(cause: RefusalCause): string {
  return `client-${cause.replaceAll(' ', '-')}`;
}

export async function startShapeServer(shape: ServerShape, credential: Credential): Promise<ShapeServer> {
  const issued: string[] = [];
  const faults: string[] = [];
  const received: ReceivedClient[] = [];
  const upstream = await startRecordingUpstream((request, response) => {
    const form = new URLSearchParams(request.body.toString());
    const client = readClient(shape, request, form);
    const found = [...findFaults(shape, request, form), ...(client === undefined ? ['no client authentication'] : [])];
    if (found.length > 0 || client === undefined) {
      faults.push(...found);
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_request"}');
      return;
    }
    received.push(client);
    const refusal = selectRefusal(shape, credential, client, form);
    if (refusal !== undefined) {
      sendRefusal(response, refusal, client.id);
      return;
    }
    const value = shape.token.value(randomBytes(12).toString('hex'));
    registerSecret('an access token', value);
    issued.push(value);
    const body = JSON.stringify({ ...shape.token.members, access_token: value }).replaceAll('CLIENT_ID', client.id);
    response.writeHead(200, { 'content-type': 'application/json', ...shape.token.headers }).end(body);
  });
  return { url: upstream.url, issued, faults, received, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
}

function readClient(shape: ServerShape, request: RecordedRequest, form: URLSearchParams): ReceivedClient | undefined {
  const basic = /^Basic (\S+)$/.exec(request.headers.authorization ?? '')?.[1];
  if (basic === undefined) {
    const [id, secret] = [form.get('client_id'), form.get('client_secret')];
    return id === null || secret === null ? undefined : { id, secret, method: 'client_secret_post' };
  }
  const text = Buffer.from(basic, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  const decode = (part: string): string =>
    shape.request.decodesBasic ? (new URLSearchParams(`part=${part}`).get('part') ?? '') : part;
  return {
    id: decode(text.slice(0, colon)),
    secret: decode(text.slice(colon + 1)),
    method: 'client_secret_basic',
  };
}

function findFaults(shape: ServerShape, request: RecordedRequest, form: URLSearchParams): string[] {
  const { target, form: fields, methods, needsUserAgent } = shape.request;
  const isBasic = request.headers.authorization !== undefined;
  const method = isBasic ? 'client_secret_basic' : 'client_secret_post';
  const names = ['grant_type', ...Object.keys(fields), ...(isBasic ? [] : ['client_id', 'client_secret'])];
  const faults = {
    method: request.method !== 'POST' && request.method,
    target: request.path !== target && request.path,
    'content-type': request.headers['content-type'] !== 'application/x-www-form-urlencoded' && 'of another kind',
    'user-agent': needsUserAgent && request.headers['user-agent'] === undefined && 'missing',
    'client authentication': !methods.includes(method) && method,
    'form fields': [...form.keys()].toSorted().join() !== names.toSorted().join() && [...form.keys()].join(),
    grant_type: form.get('grant_type') !== 'client_credentials' && 'another',
  };
  return Object.entries(faults).flatMap(([name, fault]) => (fault === false ? [] : [`${name}: ${fault}`]));
}

function selectRefusal(
  { refusals, request }: ServerShape,
  credential: Credential,
  client: ReceivedClient,
  form: URLSearchParams,
): Refusal | undefined {
  const byId = refusals.find(({ cause }) => clientIdFor(cause) === client.id);
  if (byId !== undefined) return byId;
  const cause = ((): RefusalCause | undefined => {
    if (client.id !== credential.id) return 'unknown client';
    if (client.secret !== credential.secret) return 'wrong secret';
    return Object.entries(request.form).every(([name, value]) => form.get(name) === value) ? undefined : 'wrong grant';
  })();
  if (cause === undefined) return undefined;
  const refusal = refusals.find((each) => each.cause === cause);
  if (refusal === undefined) throw new Error(`the shape has no response for: ${cause}`);
  return refusal;
}

function sendRefusal(response: ServerResponse, { status, headers, body }: Refusal, clientId: string): void {
  const isPage = typeof body === 'string';
  const text = (isPage ? body : JSON.stringify(body)).replaceAll('CLIENT_ID', clientId);
  response.writeHead(status, { 'content-type': isPage ? 'text/html' : 'application/json', ...headers }).end(text);
}
