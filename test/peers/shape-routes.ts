/**
 * The sidecar as users run it in front of the stub of one published shape (shape-server.ts), with the settings that
 * docs/authorization-servers.md gives for the product: a route for each method of client authentication and each refusal.
 */
import { randomBytes } from 'node:crypto';
import { parse } from 'yaml';
import { registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import { startCredentialRoutes, TOP_LEVEL } from './credential-routes.ts';
import type { CredentialRoutes, CredentialSettings } from './credential-routes.ts';
import type { Refusal, SecretMethod, ServerShape } from './server-shapes.ts';
import { clientIdFor, startShapeServer } from './shape-server.ts';
import type { ShapeServer } from './shape-server.ts';

/** What encodings change, and what a generated secret of these products may hold. */
const SPECIAL = `:%+&=/é日本"\\ ~%2B%41'`;

function newSpecialSecret(): string {
  const secret = `${randomBytes(6).toString('hex')}${SPECIAL}${randomBytes(6).toString('hex')}`;
  registerSecret('a client secret', secret);
  return secret;
}

interface AuthSettings {
  readonly method: SecretMethod;
  readonly basicEncoding?: string;
}

export interface ShapeRoutes extends AsyncDisposable {
  /** Of all routes. */
  readonly clients: readonly Credential[];
  readonly server: ShapeServer;
  readonly routes: CredentialRoutes;
  /** A call that needs a token; `isObtained` when the upstream received one that the server issued. */
  readonly callWith: (method: SecretMethod) => Promise<{ readonly isObtained: boolean; readonly text: string }>;
  /** A call whose token request is refused. */
  readonly callRefused: (refusal: Refusal) => Promise<RefusedCall>;
}

export interface RefusedCall {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Whether status, code and detail are as the shape says. */
  readonly isExpected: boolean;
}

const routeOf = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** One sidecar with a route and a credential for each further method and each refusal. */
export async function startShapeRoutes(shape: ServerShape): Promise<ShapeRoutes> {
  await using starting = new AsyncDisposableStack();
  const registered = { id: `client-${randomBytes(4).toString('hex')}`, secret: newSpecialSecret() };
  const server = starting.use(await startShapeServer(shape, registered));
  const auth = { ...(parse(shape.auth) as AuthSettings), url: server.url };
  const [grantName = '', grant = ''] = Object.entries(shape.request.form)[0] ?? [];
  const clients: Credential[] = [registered];
  const credentials: Record<string, CredentialSettings> = {};
  for (const method of shape.request.methods.slice(1))
    credentials[routeOf(method)] = { method, clientId: registered.id, clientSecret: registered.secret };
  for (const { cause } of shape.refusals) {
    const isRegistered = cause === 'wrong secret' || cause === 'wrong grant';
    const client = {
      id: isRegistered ? registered.id : clientIdFor(cause),
      secret: cause === 'wrong grant' ? registered.secret : newSpecialSecret(),
    };
    clients.push(client);
    credentials[routeOf(cause)] = {
      method: auth.method,
      clientId: client.id,
      clientSecret: client.secret,
      ...(auth.basicEncoding === undefined ? {} : { basicEncoding: auth.basicEncoding }),
      ...(cause === 'wrong grant' ? { [grantName]: `${grant}2` } : {}),
    };
  }
  const top = { ...auth, clientId: registered.id, clientSecret: registered.secret };
  const routes = starting.use(await startCredentialRoutes(`shape-${routeOf(shape.name)}`, top, credentials));
  const callWith = async (method: SecretMethod) => {
    const { status, text } = await routes.call(method === shape.request.methods[0] ? TOP_LEVEL : routeOf(method));
    const bearer = routes.upstream.requests.at(-1)?.headers.authorization ?? '';
    return { isObtained: status === 200 && server.issued.some((token) => bearer === `Bearer ${token}`), text };
  };
  const callRefused = async ({ cause, code, shows }: Refusal): Promise<RefusedCall> => {
    const { status, text } = await routes.call(routeOf(cause));
    const reply = JSON.parse(text) as { readonly code: string; readonly detail: string };
    const isExpected =
      status === (code === 'TOKEN_REJECTED' ? 502 : 503) &&
      reply.code === code &&
      shows.every((words) => reply.detail.includes(words));
    return { status, code: reply.code, detail: reply.detail, isExpected };
  };
  const running = starting.move();
  return { clients, server, routes, callWith, callRefused, [Symbol.asyncDispose]: () => running.disposeAsync() };
}
