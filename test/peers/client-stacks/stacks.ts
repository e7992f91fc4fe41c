/**
 * The client stacks: how each is started, how it is given a proxy, what it cannot do, and how it states its version. Client programs are
 * in test/peers/clients; those of Java and Go are compiled first.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KEPT_CALLS } from './cells.ts';
import type { Cell, Way } from './cells.ts';

const CLIENTS = join(import.meta.dirname, '..', 'clients');
/** Debian's, which sees Debian's packages. */
const PYTHON = '/usr/bin/python3';

export interface ClientStack {
  /** Its row in the table. */
  readonly name: string;
  /** What its program is given as the first argument. */
  readonly variant: string;
  readonly program: Program;
  /** Cells that cannot be run, with the reason. */
  readonly notRun?: Partial<Record<Cell, string>>;
  /** Most that the client may open in the cell `keep-alive`. Default 1. */
  readonly maxConnections?: Partial<Record<Way, number>>;
  /** What a cell that works needs, or why there is more than one connection. */
  readonly notes?: Partial<Record<Cell, string>>;
  /** Where each call must be refused, and nothing may reach the API. */
  readonly refused?: readonly Way[];
  /** How the application is given the proxy. */
  readonly proxySetting: string;
}

export interface Program {
  /** @param proxyUrl what the program must be given besides `http_proxy` in its environment; undefined without a proxy */
  command(built: BuiltClients, proxyUrl: URL | undefined): readonly string[];
  readonly version: readonly string[];
}

/** Where compiled clients are. */
export interface BuiltClients extends Disposable {
  readonly folder: string;
}

/** Takes some seconds. @throws Error when a compiler is missing or refuses */
export function buildClients(): BuiltClients {
  const folder = mkdtempSync(join(tmpdir(), 'client-stacks-'));
  execFileSync('javac', ['-d', folder, join(CLIENTS, 'Client.java')], { stdio: 'pipe' });
  execFileSync('go', ['build', '-o', join(folder, 'client-go'), join(CLIENTS, 'client.go')], {
    stdio: 'pipe',
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      GOCACHE: join(folder, 'go-cache'),
      GO111MODULE: 'off',
    },
  });
  return {
    folder,
    [Symbol.dispose]: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const java: Program = {
  command: ({ folder }, proxy) => [
    'java',
    // A short run is not worth the optimizing compiler.
    '-XX:TieredStopAtLevel=1',
    ...(proxy === undefined ? [] : [`-Dhttp.proxyHost=${proxy.hostname}`, `-Dhttp.proxyPort=${proxy.port}`]),
    '-cp',
    folder,
    'Client',
  ],
  version: ['java', '-version'],
};

const shell = (program: string): Program => ({
  command: () => ['bash', join(CLIENTS, 'client.sh')],
  version: [program, '--version'],
});

const php: Program = { command: () => ['php', join(CLIENTS, 'client.php')], version: ['php', '--version'] };

const python = (module: string): Program => ({
  command: () => [PYTHON, join(CLIENTS, 'client.py')],
  version: [PYTHON, '-c', `import ${module}; print(${module}.__version__)`],
});

const perl: Program = {
  command: () => ['perl', join(CLIENTS, 'client.pl')],
  version: ['perl', '-MLWP', '-e', 'print $LWP::VERSION'],
};

const ruby: Program = { command: () => ['ruby', join(CLIENTS, 'client.rb')], version: ['ruby', '--version'] };

const go: Program = { command: ({ folder }) => [join(folder, 'client-go')], version: ['go', 'version'] };

const node: Program = {
  command: (_, proxy) => [
    process.execPath,
    ...(proxy === undefined ? [] : ['--use-env-proxy']),
    join(CLIENTS, 'client.mjs'),
  ],
  version: [process.execPath, '--version'],
};

const ENVIRONMENT = '`http_proxy`';
const SYSTEM_PROPERTIES = '`-Dhttp.proxyHost`, `-Dhttp.proxyPort`';
const READS_WHOLE_MESSAGES = 'SOAP messages are read whole';
const soap = { notRun: { sse: READS_WHOLE_MESSAGES } };

function curlStacks(...variants: readonly string[]): ClientStack[] {
  return variants.map((variant) => ({ name: variant, variant, program: shell('curl'), proxySetting: ENVIRONMENT }));
}

export const CLIENT_STACKS: readonly ClientStack[] = [
  { name: 'Java HttpClient', variant: 'default', program: java, proxySetting: SYSTEM_PROPERTIES },
  { name: 'Java HttpClient, HTTP/1.1', variant: 'http1', program: java, proxySetting: SYSTEM_PROPERTIES },
  {
    name: 'Java HttpClient, expectContinue',
    variant: 'expect',
    program: java,
    proxySetting: SYSTEM_PROPERTIES,
  },
  { name: 'Java HttpURLConnection', variant: 'url-connection', program: java, proxySetting: SYSTEM_PROPERTIES },
  ...curlStacks('curl', 'curl --http2'),
  ...curlStacks('curl --http1.0').map((stack) => ({
    ...stack,
    notes: { 'keep-alive': 'it keeps none open' },
    maxConnections: { direct: KEPT_CALLS },
  })),
  // Without HTTP/1.1 before it there is nothing to fall back on; to a proxy, curl speaks HTTP/1.1.
  ...curlStacks('curl --http2-prior-knowledge').map((stack) => ({ ...stack, refused: ['direct'] as const })),
  {
    name: 'PHP fopen',
    variant: 'fopen',
    program: php,
    proxySetting: 'stream context `proxy`, `request_fulluri`',
    maxConnections: { direct: KEPT_CALLS, proxy: KEPT_CALLS },
    notes: { sse: 'needs `protocol_version` 1.0', 'keep-alive': 'it keeps none open' },
  },
  { name: 'PHP curl', variant: 'curl', program: php, proxySetting: ENVIRONMENT },
  { name: 'PHP curl, CURL_HTTP_VERSION_2_0', variant: 'curl-http2', program: php, proxySetting: ENVIRONMENT },
  {
    name: 'PHP SoapClient, own location',
    variant: 'soap',
    program: php,
    proxySetting: '`proxy_host`, `proxy_port`',
    maxConnections: { direct: 2, proxy: 2 },
    notes: { 'keep-alive': 'one of them for the WSDL' },
    ...soap,
  },
  { name: 'Python requests', variant: 'requests', program: python('requests'), proxySetting: ENVIRONMENT },
  { name: 'Python httpx', variant: 'httpx', program: python('httpx'), proxySetting: ENVIRONMENT },
  {
    name: 'Python aiohttp',
    variant: 'aiohttp',
    program: python('aiohttp'),
    proxySetting: `${ENVIRONMENT}, \`trust_env=True\``,
    maxConnections: { proxy: KEPT_CALLS },
    notes: { 'keep-alive': 'it keeps none open' },
  },
  { name: 'Python zeep (SOAP)', variant: 'zeep', program: python('zeep'), proxySetting: ENVIRONMENT, ...soap },
  { name: 'Perl LWP', variant: 'lwp', program: perl, proxySetting: `${ENVIRONMENT}, \`env_proxy\`` },
  { name: 'Ruby Net::HTTP', variant: 'net-http', program: ruby, proxySetting: ENVIRONMENT },
  { name: 'Go net/http', variant: 'net-http', program: go, proxySetting: ENVIRONMENT },
  // The first is still being given back when the second call starts.
  {
    name: 'Node.js fetch',
    variant: 'fetch',
    program: node,
    proxySetting: `${ENVIRONMENT}, \`--use-env-proxy\``,
    maxConnections: { direct: 2, proxy: 2 },
  },
  { name: 'Node.js http', variant: 'http', program: node, proxySetting: `${ENVIRONMENT}, \`proxyEnv\`` },
  { name: 'wget', variant: 'wget', program: shell('wget'), proxySetting: ENVIRONMENT },
];
