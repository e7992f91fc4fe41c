/** The sidecar as users run it, in front of the stub of all partners: one route and one credential for each, from a YAML file. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { stringify } from 'yaml';
import type { Status } from '../../../src/admin/status/status.ts';
import { contentOf } from '../../support/witness.ts';
import { spawnSidecar, startSidecar } from '../../support/sidecar-process.ts';
import type { RunningSidecar } from '../../support/sidecar-process.ts';
import { createCustomer, makeKeys } from './customer.ts';
import type { Customer, Keys } from './customer.ts';
import { selectSettings } from './partner-settings.ts';
import type { PartnerSettings } from './partner-settings.ts';
import type { PartnerShape } from './partner-shape.ts';
import { CALLS_PATH, CLIENT_QUERY, DIGEST_FIELDS, startPartnerServer } from './partner-server.ts';
import type { PartnerServer } from './partner-server.ts';

export interface PartnerRoutes extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  /** What differed in requests for the partner. */
  readonly faultsOf: (shape: PartnerShape) => readonly string[];
  /** A call through the route of the partner, with a body of 1.5 MB for PUT. */
  readonly call: (shape: PartnerShape, method: 'GET' | 'POST' | 'PUT') => Promise<PartnerCall>;
  /** What the status document says about the lifetime of each token, in seconds, by name of the credential. */
  readonly readLifetimes: () => Promise<ReadonlyMap<string, number | null>>;
  /** What a command of the program prints for the same configuration. */
  readonly run: (command: string, ...args: readonly string[]) => Promise<string>;
  /** The names of partners of whom a secret is in the text: as it is, percent-encoded, or in base64. */
  readonly findSecrets: (text: string) => readonly string[];
}

export interface PartnerCall {
  readonly status: number;
  /** Whether the bodies of both directions have the same digest at both ends. */
  readonly isWhole: boolean;
  /** A refusal in words. */
  readonly text: string;
}

const OF_APPLICATION = 'of-the-application';
const BODY_BYTES = { GET: 0, POST: 300, PUT: 1_500_000 };

/** @param change changes the settings of each partner before they are written; default: none */
export async function startPartnerRoutes(
  outputName: string,
  shapes: readonly PartnerShape[],
  change: (settings: PartnerSettings, shape: PartnerShape) => PartnerSettings = (settings) => settings,
): Promise<PartnerRoutes> {
  await using starting = new AsyncDisposableStack();
  const keys = starting.use(makeKeys());
  const customers = shapes.map((shape) => createCustomer(shape, keys));
  const server = starting.use(await startPartnerServer(customers, keys));
  const file = join(keys.folder, 'sidecar.yaml');
  writeFileSync(file, writeConfiguration(customers, server, keys, change), { mode: 0o600 });
  const sidecar = starting.use(await startSidecar({ name: outputName, args: ['--config', file] }));
  const agent = new Agent({ connections: 4 });
  starting.defer(() => agent.close());
  const byShape = new Map(customers.map((customer) => [customer.shape, customer]));
  const customerOf = (shape: PartnerShape): Customer => {
    const customer = byShape.get(shape);
    if (customer === undefined) throw new Error(`${shape.name} has no route`);
    return customer;
  };
  const running = starting.move();
  return {
    sidecar,
    faultsOf: (shape) => server.faultsOf(customerOf(shape)),
    call: (shape, method) => send(agent, `${sidecar.proxyUrl}/${customerOf(shape).name}/call`, shape, method),
    readLifetimes: async () => {
      const { tokens } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Status;
      return new Map(tokens.map(({ credential, validForSeconds }) => [credential, validForSeconds]));
    },
    run: async (command, ...args) => {
      await using program = spawnSidecar({ name: outputName, args: [command, '--config', file, ...args] });
      await program.exit;
      return program.stdout() + program.stderr();
    },
    findSecrets: (text) => {
      const isShown = (secret: string): boolean => formsOf(secret).some((form) => text.includes(form));
      return customers.flatMap(({ name, secrets }) => (secrets.some(isShown) ? [name] : []));
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Each once, since the text is long. */
function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '');
  // A file for HTTP Basic holds base64 itself.
  const decoded = Buffer.from(secret, 'base64').toString();
  const isBasic = decoded.startsWith('user:');
  return [...new Set([secret, encodeURIComponent(secret), base64, isBasic ? decoded : secret])];
}

function writeConfiguration(
  customers: readonly Customer[],
  server: PartnerServer,
  { tls }: Keys,
  change: (settings: PartnerSettings, shape: PartnerShape) => PartnerSettings,
): string {
  const entries = customers.map((customer) => {
    const { shape, name, fill } = customer;
    const url = server.urlOf(customer);
    const { auth, upstream } = change(selectSettings(shape, customer), shape);
    const caFile = url.startsWith('https:') ? { caFile: tls.caFile } : {};
    const endpoint = shape.request === undefined ? {} : { url, tokenPath: fill(shape.request.target), ...caFile };
    return {
      credential: [name, { ...endpoint, ...selectClient(customer, auth), ...auth }] as const,
      route: {
        name,
        pathPrefix: `/${name}`,
        stripPrefix: true,
        credential: name,
        baseUrl: url + CALLS_PATH,
        ...caFile,
        ...upstream,
      },
    };
  });
  return stringify({
    credentials: Object.fromEntries(entries.map(({ credential }) => credential)),
    routes: entries.map(({ route }) => route),
    throttle: { rate: 10_000, burst: 100 },
    log: { level: 'debug' },
  });
}

/** The id and the secret, if the method uses them. */
function selectClient(
  { clientId, clientSecret }: Customer,
  { method = '', grantType = '' }: PartnerSettings['auth'],
): object {
  const isIssuer = typeof grantType === 'string' && grantType.endsWith(':jwt-bearer');
  if (method === 'static' || (method === 'none' && !isIssuer)) return {};
  return { clientId, ...(method === '' || method === 'client_secret_post' ? { clientSecret } : {}) };
}

async function send(
  agent: Agent,
  url: string,
  shape: PartnerShape,
  method: 'GET' | 'POST' | 'PUT',
): Promise<PartnerCall> {
  const content = contentOf(url, BODY_BYTES[method]);
  const body = method === 'POST' ? Buffer.from(JSON.stringify({ content: content.toString('base64') })) : content;
  const { tokenField = 'Authorization', fields, query } = shape.call;
  // The application's own fields and parameters of these names must not reach the partner.
  const own = ['Authorization', tokenField, ...Object.keys(fields)].map(
    (name) => [name.toUpperCase(), OF_APPLICATION] as const,
  );
  const parameters = Object.keys(query).map((name) => `${name.toUpperCase()}=${OF_APPLICATION}&`);
  const type = method === 'POST' ? 'application/json' : 'application/octet-stream';
  const response = await request(`${url}?${parameters.join('')}${CLIENT_QUERY}`, {
    dispatcher: agent,
    method,
    headers: { 'CONTENT-TYPE': type, ...Object.fromEntries(own) },
    body: method === 'GET' ? null : body,
  });
  const received = Buffer.from(await response.body.arrayBuffer());
  const isWhole =
    response.headers[DIGEST_FIELDS.received] === digest(body) &&
    response.headers[DIGEST_FIELDS.sent] === digest(received);
  return { status: response.statusCode, isWhole, text: response.statusCode === 200 ? '' : received.toString() };
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
