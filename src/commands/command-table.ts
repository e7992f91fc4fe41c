/** The table of commands and options, with their texts, for help and the argument parser. */
import type { SettingKey } from '../config/schema/schema.ts';

export type OptionName = keyof typeof OPTIONS;
export type CommandName = keyof typeof COMMANDS;

export interface OptionSpec {
  readonly description: string;
  /** The name of its value in the help. Default: it takes no value; one of a setting that is true or false may have it after `=`. */
  readonly value?: string;
  /** The setting that it gives. Default: none. */
  readonly setting?: SettingKey;
  /** Why it is never accepted; the help leaves it out. */
  readonly refused?: string;
  readonly short?: string;
}

export interface CommandSpec {
  /** For the list of commands, at most 47 characters. */
  readonly summary: string;
  /** The name of its operand in the help. Default: none. */
  readonly operand?: string;
  /** Without `--help`. */
  readonly options: readonly OptionName[];
  /** Lines of at most 76 characters. */
  readonly description: readonly string[];
  readonly examples: readonly string[];
}

/** Settings with an option of their own; most are named as their variable. The texts are for a line of the help. */
const SETTING_OPTIONS = {
  'base-url': giveSetting('upstream.baseUrl', "the partner API's base URL", 'URL'),
  'auth-url': giveSetting('auth.url', 'base URL of the authorization server, or token URL', 'URL'),
  'token-path': giveSetting('auth.tokenPath', 'path of the token endpoint. Default: /oauth/token', 'PATH'),
  'auth-issuer': giveSetting('auth.issuer', 'issuer, instead of --auth-url', 'URL'),
  'client-id': giveSetting('auth.clientId', 'the client identifier', 'TEXT'),
  'client-id-file': giveSetting('auth.clientIdFile', 'holds the client identifier', 'FILE'),
  'client-secret-file': giveSetting('auth.clientSecretFile', 'holds the secret; else SIDECAR_CLIENT_SECRET', 'FILE'),
  audience: giveSetting('auth.audience', 'audience of the token', 'TEXT'),
  scope: giveSetting('auth.scope', 'scopes of the token, separated by blanks', 'TEXT'),
  listen: giveSetting('listen.address', 'address for the application', 'ADDRESS'),
  'admin-listen': giveSetting('admin.address', 'address of probes, metrics, status', 'ADDRESS'),
  'allowed-hosts': giveSetting('listen.allowedHosts', 'allowed values of Host', 'LIST'),
  'admin-allowed-hosts': giveSetting('admin.allowedHosts', 'the same, on the admin port', 'LIST'),
  'allowed-origins': giveSetting('listen.allowedOrigins', 'web origins that may call', 'LIST'),
  rate: giveSetting('throttle.rate', 'calls per second, or auto (the default)', 'RATE'),
  burst: giveSetting('throttle.burst', 'most permits saved up', 'NUMBER'),
  'max-in-flight': giveSetting('throttle.maxInFlight', 'most requests in flight', 'NUMBER'),
  'queue-max': giveSetting('queue.max', 'most requests waiting', 'NUMBER'),
  'queue-timeout-ms': giveSetting('queue.timeoutMs', 'longest wait of a request', 'MS'),
  'deadline-ms': giveSetting('request.deadlineMs', 'arrival to response head', 'MS'),
  'retry-attempts': giveSetting('retry.attempts', 'attempts, the first included', 'NUMBER'),
  'replay-buffer-bytes': giveSetting('retry.replayBufferBytes', 'body kept for a retry', 'NUMBER'),
  'replay-total-bytes': giveSetting('retry.replayTotalBytes', 'the same, all requests', 'NUMBER'),
  'request-timeout-ms': giveSetting('upstream.requestTimeoutMs', 'for one attempt', 'MS'),
  'body-idle-timeout-ms': giveSetting('upstream.bodyIdleTimeoutMs', 'longest time without a byte of a body', 'MS'),
  websocket: giveSetting('upstream.websocket', 'forward WebSocket upgrades'),
  'ca-file': giveSetting('upstream.caFile', 'certificate authorities to trust', 'FILE'),
  'redis-url': giveSetting('fleet.redisUrl', 'Redis of a fleet, without a password', 'URL'),
  'redis-url-file': giveSetting('fleet.redisUrlFile', 'holds the URL with a password', 'FILE'),
  'drain-ms': giveSetting('shutdown.drainMs', 'longest drain', 'MS'),
  'drain-delay-ms': giveSetting('shutdown.delayMs', 'with the listener open', 'MS'),
  'log-level': giveSetting('log.level', 'fatal, error, warn, info, debug, trace', 'LEVEL'),
  'log-format': giveSetting('log.format', 'auto, json or pretty', 'FORMAT'),
  'allow-insecure-http': giveSetting('allowInsecureHttp', 'accept http: URLs of other hosts'),
} as const satisfies Readonly<Record<string, OptionSpec>>;

function giveSetting<K extends SettingKey>(setting: K, description: string, value?: string) {
  return { setting, description, ...(value !== undefined && { value }) };
}

export const SETTING_OPTION_NAMES = Object.keys(SETTING_OPTIONS) as (keyof typeof SETTING_OPTIONS)[];

export const OPTIONS = {
  config: { value: 'FILE', description: 'YAML or JSON; also set by SIDECAR_CONFIG' },
  ...SETTING_OPTIONS,
  set: { value: 'KEY=VALUE', description: 'any setting, such as throttle.rate=5' },
  'client-secret': {
    value: 'TEXT',
    description: 'the client secret',
    refused:
      'the process list would show the secret; expected it in SIDECAR_CLIENT_SECRET, or in a file: --client-secret-file FILE (SIDECAR_CLIENT_SECRET_FILE)',
  },
  scenario: { value: 'FILE', description: 'limits, faults and rights of the simulated partner' },
  json: { description: 'one JSON document instead of lines' },
  limits: { description: 'what is known of the rate limits, for the partner' },
  probe: { value: 'PATH', description: 'also GET this upstream path with the token' },
  max: { value: 'DURATION', description: '500ms, 60s (the default), 2m' },
  file: { value: 'PATH', description: 'the file of calls. Default: unknownCalls.file' },
  since: { value: 'WHEN', description: 'only calls of the last 2h, or from an RFC 3339 instant' },
  settle: { value: 'ID', description: 'its outcome is known now; may be repeated' },
  output: { value: 'FILE', description: 'file to write. Default: sidecar.yaml' },
  yes: { description: 'ask no question; use defaults for missing options' },
  force: { description: 'overwrite existing files' },
  help: { short: 'h', description: 'details of a command, with examples' },
  version: { short: 'v', description: 'print the version' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

const CONFIGURATION_OPTIONS = ['config', 'set', ...SETTING_OPTION_NAMES] as const;
const ADMIN_OPTIONS = ['config', 'admin-listen', 'set'] as const;

export const COMMANDS = {
  run: {
    summary: 'run the sidecar from its configuration (default)',
    options: CONFIGURATION_OPTIONS,
    description: [
      'Required: SIDECAR_BASE_URL, SIDECAR_AUTH_URL, SIDECAR_CLIENT_ID and',
      'SIDECAR_CLIENT_SECRET (or …_FILE); with an API key see auth.tokenFile.',
      'SIGTERM or Ctrl-C drains; a second one stops at once. SIGHUP reloads.',
    ],
    examples: ['bearer-sidecar --config sidecar.yaml --rate 50'],
  },
  sandbox: {
    summary: 'try it in front of a simulated partner',
    options: ['scenario', ...CONFIGURATION_OPTIONS],
    description: [
      'Starts a simulated authorization server and Sales API in this process, and',
      'the sidecar in front of them. It needs no settings and calls no partner.',
      'Prints the addresses and a curl command. SIDECAR_LISTEN,',
      'SIDECAR_ADMIN_LISTEN, throttle and log settings apply.',
    ],
    examples: [
      'bearer-sidecar sandbox --listen localhost:8000 --rate 2',
      'bearer-sidecar sandbox --scenario config/scenarios/hidden-limit.yaml',
    ],
  },
  init: {
    summary: 'ask questions, write a configuration file',
    options: [
      'output',
      'base-url',
      'auth-url',
      'auth-issuer',
      'token-path',
      'client-id',
      'client-secret-file',
      'audience',
      'scope',
      'rate',
      'yes',
      'force',
    ],
    description: [
      'On a terminal it asks for missing options; otherwise, or with --yes, nothing.',
      'The client secret goes into its own file, or stays in SIDECAR_CLIENT_SECRET;',
      'other fields of the partner go into the configuration file. Both: mode 0600.',
      "A partner's curl command (for a token, or a call with an API key) or a token",
      'URL is read from the standard input or at a question. It is never executed.',
    ],
    examples: [
      'bearer-sidecar init',
      'bearer-sidecar init --base-url https://api.example.com/v1 < curl.txt',
      'bearer-sidecar init --yes --base-url https://api.example.com/v1 \\\n    --auth-url https://login.example.com --client-id my-app \\\n    --client-secret-file secret.txt --audience https://api.example.com',
    ],
  },
  check: {
    summary: 'verify settings, connections and token',
    options: ['json', 'probe', ...CONFIGURATION_OPTIONS],
    description: [
      'Checks settings, files, names, connections and certificates, obtains one',
      'token and opens TLS to the upstream. Prints each step with advice. The API',
      'is called only with --probe. No secret is printed.',
    ],
    examples: ['bearer-sidecar check --config sidecar.yaml', 'bearer-sidecar check --json | jq .ok'],
  },
  config: {
    summary: 'print the effective configuration',
    operand: '[KEY]',
    options: CONFIGURATION_OPTIONS,
    description: [
      'YAML with masked secrets, and the origin of each value as a comment.',
      'With KEY: only that key or section.',
    ],
    examples: ['bearer-sidecar config --config sidecar.yaml', 'bearer-sidecar config throttle'],
  },
  health: {
    summary: 'ask the admin port of a running sidecar',
    operand: '[live|ready|startup]',
    options: ADMIN_OPTIONS,
    description: ['For HEALTHCHECK and exec probes: exits with 0 if so, else with 1.', 'Default: live.'],
    examples: ['bearer-sidecar health', 'bearer-sidecar health ready'],
  },
  wait: {
    summary: 'wait until a running sidecar is ready',
    options: ['max', ...ADMIN_OPTIONS],
    description: ['For start scripts: exits with 0 once it has a token, with 1 after --max.'],
    examples: ['bearer-sidecar wait --max 60s && exec my-app'],
  },
  status: {
    summary: 'show the state of a running sidecar',
    options: ['json', 'limits', ...ADMIN_OPTIONS],
    description: [
      'Asks the admin port: token, limit, queue, recent refusals. Exits with 0 when',
      'the sidecar can serve requests, with 1 when it cannot or does not respond.',
    ],
    examples: [
      'bearer-sidecar status',
      'bearer-sidecar status --limits > limits.txt',
      'bearer-sidecar status --json | jq .token',
    ],
  },
  reload: {
    summary: 'make a running sidecar read its file again',
    options: ADMIN_OPTIONS,
    description: [
      'Sends SIGHUP to the sidecar of the admin port, on this machine, and waits.',
      'Exits with 1 and the reason when its configuration was not changed.',
    ],
    examples: ['bearer-sidecar reload', 'bearer-sidecar reload --admin-listen localhost:19465'],
  },
  'unknown-calls': {
    summary: 'list calls whose outcome is not known',
    options: ['file', 'since', 'settle', 'json', 'config', 'set'],
    description: [
      'Reads the file of unknownCalls.file: calls that may have been carried out and',
      'whose client has no response, oldest first, with the reason. Reconcile them',
      'with the partner, then settle each by its id; the sidecar may go on running.',
    ],
    examples: [
      'bearer-sidecar unknown-calls --since 24h',
      'bearer-sidecar unknown-calls --settle kfxqz-17 --settle kfxqz-20',
    ],
  },
  help: {
    summary: 'details of a command, with examples',
    operand: '[COMMAND]',
    options: [],
    description: ['The same as --help after the command.'],
    examples: ['bearer-sidecar help check'],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

export function commandOf(name: CommandName): CommandSpec {
  return COMMANDS[name];
}

export function optionOf(name: OptionName): OptionSpec {
  return OPTIONS[name];
}

export function formatOption(name: OptionName): string {
  const { value } = optionOf(name);
  return `--${name}${value === undefined ? '' : ` ${value}`}`;
}
