/**
 * Every command and option in words: what the help shows, what completion offers, and what the reader of arguments accepts. What a
 * command does is in its own file.
 */

export type OptionName = keyof typeof OPTIONS;
export type CommandName = keyof typeof COMMANDS;

/** One option; without `value` it stands alone. */
export interface OptionSpec {
  readonly words: string;
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
  readonly offers?: readonly string[] | 'keys' | 'commands';
  /** `--help` aside. */
  readonly options: readonly OptionName[];
  /** Lines of at most 76 characters. */
  readonly about: readonly string[];
  readonly examples: readonly string[];
}

const given = { value: 'TEXT' } as const;

export const OPTIONS = {
  config: { value: 'FILE', words: 'YAML or JSON; SIDECAR_CONFIG names one as well', isFile: true },
  json: { words: 'one JSON document instead of lines' },
  probe: { value: 'PATH', words: 'also GET this path of the upstream with the token' },
  max: { value: 'DURATION', words: '500ms, 60s (the default), 2m' },
  output: { value: 'FILE', words: 'where to write. Default: sidecar.yaml', isFile: true },
  'base-url': { value: 'URL', words: "the partner API's base URL" },
  'auth-url': { value: 'URL', words: "the authorization server's base URL" },
  'token-path': { value: 'PATH', words: 'of its token endpoint. Default: /oauth/token' },
  'client-id': { ...given, words: 'the client identifier' },
  'client-secret-file': {
    value: 'FILE',
    words: 'with the secret; else SIDECAR_CLIENT_SECRET',
    isFile: true,
  },
  audience: { ...given, words: 'to ask a token for' },
  scope: { ...given, words: 'to ask a token for, names between blanks' },
  rate: { value: 'RATE', words: 'calls per second, or auto (the default)' },
  yes: { words: 'ask nothing: defaults for what is not given' },
  force: { words: 'write over files that exist' },
  help: { short: 'h', words: 'more on a command, with examples' },
  version: { short: 'v', words: 'print the version' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const COMMANDS = {
  run: {
    summary: 'run the sidecar from its configuration (default)',
    options: ['config'],
    about: [
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
    about: [
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
    about: [
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
    about: [
      'Looks at settings, files, names, connections and certificates, fetches one',
      'token, and opens TLS to the upstream, which is not called unless --probe',
      'names a path. No secret is printed.',
    ],
    examples: ['bearer-sidecar check --config sidecar.yaml', 'bearer-sidecar check --json | jq .ok'],
  },
  config: {
    summary: 'print the effective configuration and origins',
    operand: '[KEY]',
    offers: 'keys',
    options: ['config'],
    about: [
      'YAML, with secrets masked; behind each value stands where it came from.',
      'With KEY only that key or section.',
    ],
    examples: ['bearer-sidecar config --config sidecar.yaml', 'bearer-sidecar config throttle'],
  },
  health: {
    summary: 'ask the admin port of a running sidecar',
    operand: '[live|ready|startup]',
    offers: ['live', 'ready', 'startup'],
    options: ['config'],
    about: ['For HEALTHCHECK and exec probes: ends with 0 when it is so, else with 1.', 'Without a word: live.'],
    examples: ['bearer-sidecar health', 'bearer-sidecar health ready'],
  },
  wait: {
    summary: 'wait until a running sidecar is ready',
    options: ['config', 'max'],
    about: ['For start scripts: ends with 0 once it holds a token, with 1 after --max.'],
    examples: ['bearer-sidecar wait --max 60s && exec my-app'],
  },
  completion: {
    summary: 'print a completion script for a shell',
    operand: 'bash|zsh|fish',
    offers: ['bash', 'zsh', 'fish'],
    options: [],
    about: [
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
    offers: 'commands',
    options: [],
    about: ['The same as --help behind the command.'],
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
export function written(name: OptionName): string {
  const { value } = optionOf(name);
  return `--${name}${value === undefined ? '' : ` ${value}`}`;
}
