/**
 * Every command and option in words: what the help shows, what completion offers, and what the reader of arguments accepts. What a
 * command does is in its own file.
 */

export type OptionName = keyof typeof OPTIONS;
export type CommandName = keyof typeof COMMANDS;

/** One option; without `value` it stands alone. */
export interface OptionSpec {
  readonly description: string;
  /** What follows it, as the help names it. */
  readonly value?: string;
  /** One letter that stands for it. */
  readonly short?: string;
  /** Completion offers the names of files. */
  readonly isFile?: boolean;
}

/** One command. */
export interface CommandSpec {
  /** Half a sentence, at most 47 characters, for the list of commands. */
  readonly summary: string;
  /** What may follow the command, as the help names it. Default: nothing. */
  readonly operand?: string;
  /** What completion offers there: words, or the keys of the configuration. Default: nothing. */
  readonly completions?: readonly string[] | 'keys' | 'commands';
  /** `--help` aside. */
  readonly options: readonly OptionName[];
  /** Lines of at most 76 characters. */
  readonly description: readonly string[];
  readonly examples: readonly string[];
}

const TEXT_OPTION = { value: 'TEXT' } as const;

export const OPTIONS = {
  config: { value: 'FILE', description: 'YAML or JSON; SIDECAR_CONFIG names one as well', isFile: true },
  json: { description: 'one JSON document instead of lines' },
  probe: { value: 'PATH', description: 'also GET this path of the upstream with the token' },
  max: { value: 'DURATION', description: '500ms, 60s (the default), 2m' },
  output: { value: 'FILE', description: 'where to write. Default: sidecar.yaml', isFile: true },
  'base-url': { value: 'URL', description: "the partner API's base URL" },
  'auth-url': { value: 'URL', description: "the authorization server's base URL" },
  'token-path': { value: 'PATH', description: 'of its token endpoint. Default: /oauth/token' },
  'client-id': { ...TEXT_OPTION, description: 'the client identifier' },
  'client-secret-file': {
    value: 'FILE',
    description: 'with the secret; else SIDECAR_CLIENT_SECRET',
    isFile: true,
  },
  audience: { ...TEXT_OPTION, description: 'to ask a token for' },
  scope: { ...TEXT_OPTION, description: 'to ask a token for, names between blanks' },
  rate: { value: 'RATE', description: 'calls per second, or auto (the default)' },
  yes: { description: 'ask nothing: defaults for what is not given' },
  force: { description: 'write over files that exist' },
  help: { short: 'h', description: 'more on a command, with examples' },
  version: { short: 'v', description: 'print the version' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const COMMANDS = {
  run: {
    summary: 'run the sidecar from its configuration (default)',
    options: ['config'],
    description: [
      'Settings come from defaults < file < SIDECAR_ variables. The least it needs:',
      '  SIDECAR_BASE_URL, SIDECAR_AUTH_URL, SIDECAR_CLIENT_ID,',
      '  SIDECAR_CLIENT_SECRET or SIDECAR_CLIENT_SECRET_FILE,',
      '  SIDECAR_AUDIENCE or SIDECAR_SCOPE',
      'SIGTERM or Ctrl-C drains: work in hand is finished. A second one ends it at',
      'once. SIGHUP reads the file again. The log is JSON, one line each, and',
      'readable on a terminal (SIDECAR_LOG_FORMAT=auto, json or pretty).',
    ],
    examples: ['bearer-sidecar --config sidecar.yaml', 'SIDECAR_RATE=50 bearer-sidecar run --config sidecar.yaml'],
  },
  sandbox: {
    summary: 'try it in front of a simulated partner',
    options: ['config'],
    description: [
      'Starts an authorization server and a Sales API in this process, and the',
      'sidecar in front of them. Nothing to configure, no partner is called.',
      'Prints the addresses and a curl line to paste. SIDECAR_LISTEN,',
      'SIDECAR_ADMIN_LISTEN, throttle and log settings apply.',
    ],
    examples: ['bearer-sidecar sandbox', 'SIDECAR_LISTEN=localhost:8000 SIDECAR_RATE=2 bearer-sidecar sandbox'],
  },
  init: {
    summary: 'ask, then write a configuration file',
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
      'On a terminal it asks for what is not given; elsewhere, or with --yes, it',
      'asks nothing. The secret is never written into the file: it goes into a',
      'file of its own with mode 0600, or stays in SIDECAR_CLIENT_SECRET.',
    ],
    examples: [
      'bearer-sidecar init',
      'bearer-sidecar init --yes --base-url https://api.example.com/v1 \\\n    --auth-url https://login.example.com --client-id my-app \\\n    --client-secret-file secret.txt --audience https://api.example.com',
    ],
  },
  check: {
    summary: 'would it work? every step, with what to do next',
    options: ['config', 'json', 'probe'],
    description: [
      'Looks at settings, files, names, connections and certificates, fetches one',
      'token, and opens TLS to the upstream, which is not called unless --probe',
      'names a path. No secret is printed.',
    ],
    examples: ['bearer-sidecar check --config sidecar.yaml', 'bearer-sidecar check --json | jq .ok'],
  },
  config: {
    summary: 'print the effective configuration and origins',
    operand: '[KEY]',
    completions: 'keys',
    options: ['config'],
    description: [
      'YAML, with secrets masked; behind each value stands where it came from.',
      'With KEY only that key or section.',
    ],
    examples: ['bearer-sidecar config --config sidecar.yaml', 'bearer-sidecar config throttle'],
  },
  health: {
    summary: 'ask the admin port of a running sidecar',
    operand: '[live|ready|startup]',
    completions: ['live', 'ready', 'startup'],
    options: ['config'],
    description: ['For HEALTHCHECK and exec probes: ends with 0 when it is so, else with 1.', 'Without a word: live.'],
    examples: ['bearer-sidecar health', 'bearer-sidecar health ready'],
  },
  wait: {
    summary: 'wait until a running sidecar is ready',
    options: ['config', 'max'],
    description: ['For start scripts: ends with 0 once it holds a token, with 1 after --max.'],
    examples: ['bearer-sidecar wait --max 60s && exec my-app'],
  },
  completion: {
    summary: 'print a completion script for a shell',
    operand: 'bash|zsh|fish',
    completions: ['bash', 'zsh', 'fish'],
    options: [],
    description: [
      'bash  source it in ~/.bashrc:',
      '        source <(bearer-sidecar completion bash)',
      '      or, for every user, into /etc/bash_completion.d/',
      'zsh   the same in ~/.zshrc, behind compinit; or a file _bearer-sidecar in',
      '      a directory of $fpath',
      'fish  into ~/.config/fish/completions/bearer-sidecar.fish',
    ],
    examples: [
      'source <(bearer-sidecar completion bash)',
      'bearer-sidecar completion zsh > "${fpath[1]}/_bearer-sidecar"',
      'bearer-sidecar completion fish | source',
    ],
  },
  help: {
    summary: 'more on a command, with examples',
    operand: '[COMMAND]',
    completions: 'commands',
    options: [],
    description: ['The same as --help behind the command.'],
    examples: ['bearer-sidecar help check'],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

/** All commands, in the order of the help. */
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];

/** All options. */
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

/** The command of a name. */
export function commandOf(name: CommandName): CommandSpec {
  return COMMANDS[name];
}

/** The option of a name. */
export function optionOf(name: OptionName): OptionSpec {
  return OPTIONS[name];
}

/** With its value, as the help writes it: `--config FILE`. */
export function formatOption(name: OptionName): string {
  const { value } = optionOf(name);
  return `--${name}${value === undefined ? '' : ` ${value}`}`;
}
