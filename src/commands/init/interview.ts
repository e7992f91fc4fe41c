/** Asks the user for the settings that were not given as options. An invalid value is explained and asked for again. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { toSingleLine } from '../../config/load/problems.ts';
import type { Paint } from '../terminal.ts';
import { findFaultOf } from './init-settings.ts';
import type { InitSettingKey, InitSettings, SecretLocation } from './init-settings.ts';
import type { TerminalPrompter } from './terminal-prompter.ts';
import { readAuthAddress } from './auth-address.ts';
import { DEFAULT_OUTPUT, secretPathFor } from './files.ts';
import { describeCommand, isCurlCommand, readPartnerText } from './partner-text.ts';
import type { UnderstoodCommand } from './curl/token-command.ts';

export interface GivenOptions {
  readonly settings: InitSettings;
  readonly output: string | undefined;
  /** Whether existing files may be overwritten. */
  readonly isForced: boolean;
}

/** The files to write. */
export interface InitPlan {
  readonly settings: InitSettings;
  readonly secret: SecretLocation;
  readonly output: string;
  readonly isForced: boolean;
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
  'upstream.baseUrl': { prompt: "Base URL of the partner's API", hint: 'such as https://api.example.com/v1' },
  'auth.url': {
    prompt: 'Base URL of the authorization server',
    hint: 'such as https://login.example.com; or its token URL, or a curl command for a token',
  },
  'auth.tokenPath': { prompt: 'Path of its token endpoint', fallback: '/oauth/token' },
  'auth.clientId': { prompt: 'Client id' },
  'auth.clientSecretFile': { prompt: 'File that holds the client secret' },
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
  /** From a curl command. */
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
    for (const key of ['upstream.baseUrl', 'auth.url', 'auth.tokenPath', 'auth.clientId'] as const)
      await this.#ask(key);
    const secret = await this.#askSecretPlace(secretPathFor(output));
    await this.#askAudienceAndScope();
    await this.#ask('throttle.rate');
    return { settings: this.#settings, secret, output, isForced: this.#isForced };
  }

  /** Repeats until the value is valid. A valid option is not asked for. */
  async #ask(key: QuestionKey): Promise<void> {
    const { prompt, hint, fallback }: Question = QUESTIONS[key];
    if (this.#isKnown(key)) return;
    if (key === 'auth.tokenPath')
      this.#prompter.writeLine(this.#paint('quiet', '(type "issuer" if the server publishes where it is)'));
    const remark = fallback === undefined || fallback === '' ? hint && ` (${hint})` : ` [${fallback}]`;
    do {
      const text = (await this.#prompter.ask(`${prompt}${this.#paint('quiet', remark ?? '')}: `)) || fallback;
      if (text === undefined || text === '') this.#settings.delete(key);
      else await this.#take(key, text);
      if (text === '') return;
      if (text === undefined) this.#showWarning(VALUE_REQUIRED);
    } while (!this.#isKnown(key));
  }

  /** An authorization server may be known by its issuer instead. */
  #isKnown(key: QuestionKey): boolean {
    if (this.#settings.has('auth.issuer') && (key === 'auth.url' || key === 'auth.tokenPath'))
      return this.#isValid('auth.issuer');
    return this.#settings.has(key) && this.#isValid(key);
  }

  async #take(key: QuestionKey, text: string): Promise<void> {
    if ((key === 'upstream.baseUrl' || key === 'auth.url') && isCurlCommand(text)) await this.#takeCommand(text);
    else if (key === 'auth.tokenPath' && text === 'issuer') {
      this.#settings.set('auth.issuer', this.#settings.get('auth.url') ?? '');
      this.#settings.delete('auth.url');
    } else if (key === 'auth.url')
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
    if (reading.kind === 'command') this.#takeUnderstood(reading.command);
    else if (reading.kind === 'refused' || reading.kind === 'incomplete')
      this.#showWarning(`the pasted text ${reading.fault}`);
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

  /** Asks once for each existing file. */
  async #canWrite(path: string): Promise<boolean> {
    if (this.#known.isForced || !existsSync(path)) return true;
    const question = `${toSingleLine(path)} exists. Overwrite it? ${this.#paint('quiet', '[y/N]')} `;
    const mayWrite = /^y(es)?$/i.test(await this.#prompter.ask(question));
    this.#isForced ||= mayWrite;
    return mayWrite;
  }

  async #askSecretPlace(path: string): Promise<SecretLocation> {
    if (!this.#settings.has('auth.clientSecretFile')) {
      const pasted = await this.#placePastedSecret(path);
      if (pasted !== undefined) return pasted;
      this.#prompter.writeLine('Where to store the client secret? It is never written into the configuration file.');
      this.#prompter.writeLine(`  1  in a new file that only you can read: ${toSingleLine(path)}`);
      this.#prompter.writeLine('  2  in an existing file');
      this.#prompter.writeLine('  3  in the variable SIDECAR_CLIENT_SECRET when the sidecar starts');
      const choice = await this.#askLocationChoice(path);
      if (choice === '3') return { kind: 'environment' };
      if (choice === '1') return this.#askSecret(path);
    }
    await this.#ask('auth.clientSecretFile');
    return { kind: 'file' };
  }

  /** Undefined without a usable secret in a curl command, or when its file may not be overwritten. */
  async #placePastedSecret(path: string): Promise<SecretLocation | undefined> {
    if (this.#pastedSecret === undefined) return undefined;
    const place: SecretLocation = { kind: 'new-file', path, secret: this.#pastedSecret };
    const fault = findFaultOf('auth.clientSecret', this.#settings, place);
    if (fault !== undefined) this.#showWarning(`the client secret of the command ${fault}`);
    return fault === undefined && (await this.#canWrite(path)) ? place : undefined;
  }

  async #askLocationChoice(path: string): Promise<'1' | '2' | '3'> {
    for (;;) {
      const choice = (await this.#prompter.ask(`1, 2 or 3 ${this.#paint('quiet', '[1]')}: `)) || '1';
      if (choice === '2' || choice === '3') return choice;
      if (choice === '1' && (await this.#canWrite(path))) return choice;
    }
  }

  async #askSecret(path: string): Promise<SecretLocation> {
    for (;;) {
      const secret = await this.#prompter.askSecret('Client secret (not shown): ');
      const place: SecretLocation = { kind: 'new-file', path, secret };
      const fault = secret === '' ? VALUE_REQUIRED : findFaultOf('auth.clientSecret', this.#settings, place);
      if (fault === undefined) return place;
      this.#showWarning(fault);
    }
  }

  /** The token needs an audience, scopes, or both. */
  async #askAudienceAndScope(): Promise<void> {
    if (this.#settings.has('auth.resource')) return;
    const isGiven = this.#settings.has('auth.audience') || this.#settings.has('auth.scope');
    for (const key of ['auth.audience', 'auth.scope'] as const)
      if (!isGiven || this.#settings.has(key)) await this.#ask(key);
    if (this.#settings.has('auth.audience') || this.#settings.has('auth.scope')) return;
    this.#showWarning('an audience or a scope is required for the token');
    await this.#askAudienceAndScope();
  }

  #showWarning(why: string): void {
    this.#prompter.writeLine(this.#paint('warning', `  ! ${toSingleLine(why)}`));
  }
}
