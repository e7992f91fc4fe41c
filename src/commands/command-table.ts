/** The table of commands and options, with their texts, for help, completion and the argument parser. */

export type OptionName = keyof typeof OPTIONS;
export type CommandName = keyof typeof COMMANDS;

/** One option; without `value` it is a flag. */
export interface OptionSpec {
  readonly description: string;
  /** The name of its value in the help. */
  readonly value?: string;
  /** Its one-letter form. */
  readonly short?: string;
  /** Completion offers file names. */
  readonly isFile?: boolean;
}

export interface CommandSpec {
  /** For the list of commands, at most 47 characters. */
  readonly summary: string;
  /** The name of its operand in the help. Default: none. */
  readonly operand?: string;
  /** Completions of the operand: words, or the keys of the configuration. Default: none. */
  readonly completions?: readonly string[] | 'keys' | 'commands';
  /** Without `--help`. */
  readonly options: readonly OptionName[];
  /** Lines of at most 76 characters. */
  readonly description: readonly string[];
  readonly examples: readonly string[];
}

const TEXT_OPTION = { value: 'TEXT' } as const;

export const OPTIONS = {
  config: { value: 'FILE', description: 'YAML or JSON; also set by SIDECAR_CONFIG', isFile: true },
  json: { description: 'one JSON document instead of lines' },
  probe: { value: 'PATH', description: 'also GET this upstream path with the token' },
  max: { value: 'DURATION', description: '500ms, 60s (the default), 2m' },
  output: { value: 'FILE', description: 'file to write. Default: sidecar.yaml', isFile: true },
  'base-url': { value: 'URL', description: "the partner API's base URL" },
  'auth-url': { value: 'URL', description: "the authorization server's base URL" },
  'token-path': { value: 'PATH', description: 'path of the token endpoint. Default: /oauth/token' },
  'client-id': { ...TEXT_OPTION, description: 'the client identifier' },
  'client-secret-file': {
    value: 'FILE',
    description: 'holds the secret; else SIDECAR_CLIENT_SECRET',
    isFile: true,
  },
  audience: { ...TEXT_OPTION, description: 'audience of the token' },
  scope: { ...TEXT_OPTION, description: 'scopes of the token, separated by blanks' },
  rate: { value: 'RATE', description: 'calls per second, or auto (the default)' },
  yes: { description: 'ask no question; use defaults for missing options' },
  force: { description: 'overwrite existing files' },
  help: { short: 'h', description: 'details of a command, with examples' },
  version: { short: 'v', description: 'print the version' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const COMMANDS = {
  run: {
    summary: 'run the sidecar from its configuration (default)',
    options: ['config'],
    description: [
      'Settings come from defaults < file < SIDECAR_ variables. Required are:',
      '  SIDECAR_BASE_URL, SIDECAR_AUTH_URL, SIDECAR_CLIENT_ID,',
      '  SIDECAR_CLIENT_SECRET or SIDECAR_CLIENT_SECRET_FILE,',
      '  SIDECAR_AUDIENCE or SIDECAR_SCOPE',
      'SIGTERM or Ctrl-C drains: open requests finish first. A second one stops at',
      'once. SIGHUP reads the file again. The log is one JSON document per line,',
      'and readable text on a terminal (SIDECAR_LOG_FORMAT=auto, json or pretty).',
    ],
    examples: ['bearer-sidecar --config sidecar.yaml', 'SIDECAR_RATE=50 bearer-sidecar run --config sidecar.yaml'],
  },
  sandbox: {
    summary: 'try it in front of a simulated partner',
    options: ['config'],
    description: [
      'Starts a simulated authorization server and Sales API in this process, and',
      'the sidecar in front of them. It needs no settings and calls no partner.',
      'Prints the addresses and a curl command. SIDECAR_LISTEN,',
      'SIDECAR_ADMIN_LISTEN, throttle and log settings apply.',
    ],
    examples: ['bearer-sidecar sandbox', 'SIDECAR_LISTEN=localhost:8000 SIDECAR_RATE=2 bearer-sidecar sandbox'],
  },
  init: {
    summary: 'ask questions, write a configuration file',
    options: [
      'output',
      'base-url',
      'auth-url',
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
      'On a terminal it asks for missing options; otherwise, or with --yes, it asks',
      'nothing. The secret is never written into the configuration file: it goes',
      'into its own file with mode 0600, or stays in SIDECAR_CLIENT_SECRET.',
    ],
    examples: [
      'bearer-sidecar init',
      'bearer-sidecar init --yes --base-url https://api.example.com/v1 \\\n    --auth-url https://login.example.com --client-id my-app \\\n    --client-secret-file secret.txt --audience https://api.example.com',
    ],
  },
  check: {
    summary: 'verify settings, connections and token',
    options: ['config', 'json', 'probe'],
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
    completions: 'keys',
    options: ['config'],
    description: [
      'YAML with masked secrets, and the origin of each value as a comment.',
      'With KEY: only that key or section.',
    ],
    examples: ['bearer-sidecar config --config sidecar.yaml', 'bearer-sidecar config throttle'],
  },
  health: {
    summary: 'ask the admin port of a running sidecar',
    operand: '[live|ready|startup]',
    completions: ['live', 'ready', 'startup'],
    options: ['config'],
    description: ['For HEALTHCHECK and exec probes: exits with 0 if so, else with 1.', 'Default: live.'],
    examples: ['bearer-sidecar health', 'bearer-sidecar health ready'],
  },
  wait: {
    summary: 'wait until a running sidecar is ready',
    options: ['config', 'max'],
    description: ['For start scripts: exits with 0 once it has a token, with 1 after --max.'],
    examples: ['bearer-sidecar wait --max 60s && exec my-app'],
  },
  completion: {
    summary: 'print a completion script for a shell',
    operand: 'bash|zsh|fish',
    completions: ['bash', 'zsh', 'fish'],
    options: [],
    description: [
      'bash  in ~/.bashrc:',
      '        source <(bearer-sidecar completion bash)',
      '      or, for every user, a file in /etc/bash_completion.d/',
      'zsh   the same in ~/.zshrc, after compinit; or a file _bearer-sidecar in a',
      '      directory of $fpath',
      'fish  a file ~/.config/fish/completions/bearer-sidecar.fish',
    ],
    examples: [
      'source <(bearer-sidecar completion bash)',
      'bearer-sidecar completion zsh > "${fpath[1]}/_bearer-sidecar"',
      'bearer-sidecar completion fish | source',
    ],
  },
  help: {
    summary: 'details of a command, with examples',
    operand: '[COMMAND]',
    completions: 'commands',
    options: [],
    description: ['The same as --help after the command.'],
    examples: ['bearer-sidecar help check'],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

/** All commands, in the order of the help. */
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

export function commandOf(name: CommandName): CommandSpec {
  return COMMANDS[name];
}

export function optionOf(name: OptionName): OptionSpec {
  return OPTIONS[name];
}

/** An option with its value: `--config FILE`. */
export function formatOption(name: OptionName): string {
  const { value } = optionOf(name);
  return `--${name}${value === undefined ? '' : ` ${value}`}`;
}
