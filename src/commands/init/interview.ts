/** Asks the user for the settings that were not given as options. An invalid value is explained and asked for again. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { toSingleLine } from '../../config/load/problems.ts';
import type { Paint } from '../terminal.ts';
import { findFaultOf, hasNoSecret, secretFileKey } from './init-settings.ts';
import type { InitSettingKey, InitSettings, SecretLocation } from './init-settings.ts';
import type { TerminalPrompter } from './terminal-prompter.ts';
import { TOKEN_SYNTAX } from '../../token/endpoint/token-response.ts';
import { DEFAULT_OUTPUT, secretPathFor } from './written-files.ts';
import { describeCommand, isCurlCommand, readAuthAddress, readPartnerText } from './partner-text.ts';
import type { AssumedKind, UnderstoodCommand } from './curl/token-command.ts';

export interface GivenOptions {
  readonly settings: InitSettings;
  readonly output: string | undefined;
  readonly isForced: boolean;
}

export interface InitPlan extends GivenOptions {
  readonly secret: SecretLocation;
  readonly output: string;
}

/** A setting that has a question; the others are only read from a curl command. */
type QuestionKey = keyof typeof QUESTIONS;

interface Question {
  readonly prompt: string;
  /** Shown after the prompt in parentheses. */
  readonly hint?: string;
  /** Used for empty input; '' omits the setting. Default: a value is required. */
  readonly fallback?: string;
}

const QUESTIONS = {
  'upstream.baseUrl': {
    prompt: "Base URL of the partner's API",
    hint: 'such as https://api.example.com/v1; or a curl command',
  },
  'auth.url': {
    prompt: 'Base URL of the authorization server',
    hint: 'such as https://login.example.com; or its token URL, or a curl command for a token',
  },
  'auth.tokenPath': { prompt: 'Path of its token endpoint', fallback: '/oauth/token' },
  'auth.clientId': { prompt: 'Client id' },
  'auth.clientSecretFile': { prompt: 'File that holds the client secret' },
  'auth.tokenFile': { prompt: 'File that holds the token' },
  'auth.audience': { prompt: 'Audience', hint: 'empty: none', fallback: '' },
  'auth.scope': { prompt: 'Scopes, separated by blanks', hint: 'empty: none', fallback: '' },
  'throttle.rate': { prompt: 'Calls per second, or auto to learn the limit', fallback: 'auto' },
} as const satisfies Partial<Record<InitSettingKey, Question>>;

const VALUE_REQUIRED = 'a value is required';

export class Interview {
  readonly #prompter: TerminalPrompter;
  readonly #paint: Paint;
  readonly #known: GivenOptions;
  readonly #settings: Map<InitSettingKey, string>;
  #isForced: boolean;
  #pastedSecret: string | undefined;

  constructor(prompter: TerminalPrompter, paint: Paint, known: GivenOptions) {
    this.#prompter = prompter;
    this.#paint = paint;
    this.#known = known;
    this.#settings = new Map(known.settings);
    this.#isForced = known.isForced;
  }

  /** @throws PrompterClosed */
  async run(): Promise<InitPlan> {
    this.#prompter.writeLine('Enter accepts the default in [brackets]; Ctrl-C cancels and writes nothing.\n');
    const output = await this.#askOutput();
    await this.#ask('upstream.baseUrl');
    await this.#askAuthentication();
    for (const key of ['auth.url', 'auth.tokenPath', 'auth.clientId'] as const) await this.#ask(key);
    const secret = await this.#askSecretPlace(output);
    await this.#askAudienceAndScope();
    await this.#ask('throttle.rate');
    return { settings: this.#settings, secret, output, isForced: this.#isForced };
  }

  /** Not when an option or a curl command says it. */
  async #askAuthentication(): Promise<void> {
    if ([...this.#settings.keys()].some((key) => key.startsWith('auth.'))) return;
    this.#prompter.writeLine('How does the partner authenticate calls?');
    this.#prompter.writeLine('  1  by OAuth: a client id and a secret get a token');
    this.#prompter.writeLine('  2  by an API key, or a token that another program renews');
    if ((await this.#askChoice(['1', '2'])) === '2') this.#settings.set('auth.method', 'static');
  }

  /** Repeats until the value is valid. A valid option is not asked for. */
  async #ask(key: QuestionKey): Promise<void> {
    const { prompt, hint, fallback }: Question = QUESTIONS[key];
    if (this.#isKnown(key)) return;
    const remark = fallback === undefined || fallback === '' ? hint && ` (${hint})` : ` [${fallback}]`;
    do {
      const text = (await this.#prompter.ask(`${prompt}${this.#paint('quiet', remark ?? '')}: `)) || fallback;
      // Before a curl command is read, whose settings do not replace known ones.
      this.#settings.delete(key);
      if (text !== undefined && text !== '') await this.#take(key, text);
      if (text === '') return;
      if (text === undefined) this.#showWarning(VALUE_REQUIRED);
    } while (!this.#isKnown(key));
  }

  /** An authorization server may be known by its issuer instead. */
  #isKnown(key: QuestionKey): boolean {
    const method = this.#settings.get('auth.method');
    if (key !== 'auth.tokenFile' && key.startsWith('auth.') && method === 'static') return true;
    if (key === 'auth.clientId' && method === 'none') return true;
    if (this.#settings.has('auth.issuer') && (key === 'auth.url' || key === 'auth.tokenPath'))
      return this.#isValid('auth.issuer');
    return this.#settings.has(key) && this.#isValid(key);
  }

  async #take(key: QuestionKey, text: string): Promise<void> {
    if ((key === 'upstream.baseUrl' || key === 'auth.url') && isCurlCommand(text)) await this.#takeCommand(text);
    else if (key === 'auth.url')
      for (const [name, value] of readAuthAddress(text, this.#settings.get('auth.tokenPath')))
        this.#settings.set(name, value);
    else this.#settings.set(key, text);
  }

  /** Reads the rest of a curl command, which is not shown. Settings that are known already stay. */
  async #takeCommand(firstLine: string): Promise<void> {
    this.#prompter.writeLine(this.#paint('quiet', ' … (not shown)'));
    const lines = [firstLine, ...this.#prompter.takePendingLines()];
    let reading = readPartnerText(lines.join('\n'));
    while (reading.kind === 'incomplete') {
      const line = await this.#prompter.readHiddenLine();
      // An empty line ends a text whose quote is never closed.
      if (line.trim() === '') break;
      lines.push(line, ...this.#prompter.takePendingLines());
      reading = readPartnerText(lines.join('\n'));
    }
    if (reading.kind === 'unclear') reading = readPartnerText(lines.join('\n'), await this.#askWhatCommandDoes());
    if (reading.kind === 'command') this.#takeUnderstood(reading.command);
    else if ('fault' in reading) this.#showWarning(`the pasted text ${reading.fault}`);
  }

  async #askWhatCommandDoes(): Promise<AssumedKind> {
    this.#prompter.writeLine('What does the command do? It does not show it.');
    this.#prompter.writeLine('  1  it calls the API');
    this.#prompter.writeLine('  2  it requests a token; the sidecar will repeat it as often as it needs one');
    return (await this.#askChoice(['1', '2'])) === '2' ? 'token' : 'call';
  }

  #takeUnderstood(command: UnderstoodCommand): void {
    for (const line of describeCommand(command, this.#paint)) this.#prompter.writeLine(line);
    for (const [name, value] of command.settings) if (!this.#settings.has(name)) this.#settings.set(name, value);
    this.#pastedSecret = command.secret;
  }

  #isValid(key: InitSettingKey): boolean {
    const kind = this.#settings.has('auth.clientSecretFile') ? 'file' : 'environment';
    const fault = findFaultOf(key, this.#settings, { kind });
    if (fault !== undefined) this.#showWarning(fault);
    return fault === undefined;
  }

  async #askOutput(): Promise<string> {
    for (let given = this.#known.output; ; given = undefined) {
      const path =
        given ?? (await this.#prompter.ask(`Configuration file ${this.#paint('quiet', `[${DEFAULT_OUTPUT}]`)}: `));
      const output = path === '' ? DEFAULT_OUTPUT : path;
      if (!existsSync(dirname(output))) this.#showWarning(`the directory ${dirname(output)} does not exist`);
      else if (await this.#canWrite(output)) return output;
    }
  }

  async #canWrite(path: string): Promise<boolean> {
    if (this.#known.isForced || !existsSync(path)) return true;
    const question = `${toSingleLine(path)} exists. Overwrite it? ${this.#paint('quiet', '[y/N]')} `;
    const mayWrite = /^y(es)?$/i.test(await this.#prompter.ask(question));
    this.#isForced ||= mayWrite;
    return mayWrite;
  }

  async #askSecretPlace(output: string): Promise<SecretLocation> {
    if (hasNoSecret(this.#settings)) return { kind: 'file' };
    const key = secretFileKey(this.#settings);
    const isToken = key === 'auth.tokenFile';
    const path = secretPathFor(output, key);
    if (isToken) this.#settings.set(key, path);
    if (isToken || !this.#settings.has(key)) {
      const pasted = await this.#placePastedSecret(path);
      if (pasted !== undefined) return pasted;
      const isBasic = this.#settings.get('upstream.tokenPrefix') === 'Basic ';
      const what = isToken ? `token${isBasic ? ' (the Base64 of id:secret)' : ''}` : 'client secret';
      this.#prompter.writeLine(`Where to store the ${what}? It is never written into the configuration file.`);
      this.#prompter.writeLine(`  1  in a new file that only you can read: ${toSingleLine(path)}`);
      this.#prompter.writeLine('  2  in an existing file');
      if (!isToken) this.#prompter.writeLine('  3  in the variable SIDECAR_CLIENT_SECRET when the sidecar starts');
      const choice = await this.#askChoice(isToken ? ['1', '2'] : ['1', '2', '3'], path);
      if (choice === '3') return { kind: 'environment' };
      if (choice === '1') return this.#askSecret(path, what);
      this.#settings.delete(key);
    }
    await this.#ask(key);
    return { kind: 'file' };
  }

  /** Undefined without a usable secret in a curl command, or when its file may not be overwritten. */
  async #placePastedSecret(path: string): Promise<SecretLocation | undefined> {
    if (this.#pastedSecret === undefined) return undefined;
    const place = { kind: 'new-file', path, secret: this.#pastedSecret } as const;
    const fault = this.#findSecretFault(place);
    if (fault !== undefined) this.#showWarning(`the secret of the command ${fault}`);
    return fault === undefined && (await this.#canWrite(path)) ? place : undefined;
  }

  /** @param path the file that the first choice writes. Default: none */
  async #askChoice(choices: readonly string[], path?: string): Promise<string> {
    const shown = choices.join(', ').replace(/, (\d)$/, ' or $1');
    for (;;) {
      const choice = (await this.#prompter.ask(`${shown} ${this.#paint('quiet', '[1]')}: `)) || '1';
      if (!choices.includes(choice)) continue;
      if (choice !== '1' || path === undefined || (await this.#canWrite(path))) return choice;
    }
  }

  #findSecretFault(place: Extract<SecretLocation, { kind: 'new-file' }>): string | undefined {
    if (secretFileKey(this.#settings) === 'auth.clientSecretFile')
      return findFaultOf('auth.clientSecret', this.#settings, place);
    return TOKEN_SYNTAX.test(place.secret) ? undefined : 'has characters that a token may not have';
  }

  async #askSecret(path: string, what: string): Promise<SecretLocation> {
    for (;;) {
      const secret = await this.#prompter.askSecret(`The ${what} (not shown): `);
      const place = { kind: 'new-file', path, secret } as const;
      const fault = secret === '' ? VALUE_REQUIRED : this.#findSecretFault(place);
      if (fault === undefined) return place;
      this.#showWarning(fault);
    }
  }

  async #askAudienceAndScope(): Promise<void> {
    if (this.#settings.has('auth.resource')) return;
    const isGiven = this.#settings.has('auth.audience') || this.#settings.has('auth.scope');
    for (const key of ['auth.audience', 'auth.scope'] as const)
      if (!isGiven || this.#settings.has(key)) await this.#ask(key);
  }

  #showWarning(why: string): void {
    this.#prompter.writeLine(this.#paint('warning', `  ! ${toSingleLine(why)}`));
  }
}
