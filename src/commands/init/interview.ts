/**
 * Asks a person for what was not given as an option, one thing at a time, with a default where there is one. An answer that will not
 * do is asked for again at once, with the reason.
 */
import { dirname } from 'node:path';
import { toSingleLine } from '../../config/load/problems.ts';
import type { Paint } from '../terminal.ts';
import { findFaultOf } from './answers.ts';
import type { AnsweredKey, Answers, SecretLocation } from './answers.ts';
import type { TerminalPrompter } from './terminal-prompter.ts';
import { DEFAULT_OUTPUT, isExistingPath, secretPathFor } from './files.ts';

/** What is known from options. */
export interface KnownAnswers {
  readonly answers: Answers;
  readonly output: string | undefined;
  /** Files that exist may be written over. */
  readonly isForced: boolean;
}

/** All that is needed to write the files. */
export interface InitPlan {
  readonly answers: Answers;
  readonly secret: SecretLocation;
  readonly output: string;
  readonly isForced: boolean;
}

interface Question {
  readonly prompt: string;
  /** Behind the words, in parentheses. */
  readonly hint?: string;
  /** Taken when the answer is empty; '' leaves the setting out. Default: an answer is needed. */
  readonly fallback?: string;
}

const QUESTIONS = {
  'upstream.baseUrl': { prompt: "Base URL of the partner's API", hint: 'such as https://api.example.com/v1' },
  'auth.url': { prompt: 'Base URL of the authorization server', hint: 'such as https://login.example.com' },
  'auth.tokenPath': { prompt: 'Path of its token endpoint', fallback: '/oauth/token' },
  'auth.clientId': { prompt: 'Client id' },
  'auth.clientSecretFile': { prompt: 'File that holds the client secret' },
  'auth.audience': { prompt: 'Audience', hint: 'Enter alone: none', fallback: '' },
  'auth.scope': { prompt: 'Scopes, with a blank between two', hint: 'Enter alone: none', fallback: '' },
  'throttle.rate': { prompt: 'Calls per second, or auto to learn what is allowed', fallback: 'auto' },
} as const satisfies Record<AnsweredKey, Question>;

const ANSWER_REQUIRED = 'an answer is needed';

/** @throws ConversationEnded */
export async function interview(talk: TerminalPrompter, paint: Paint, known: KnownAnswers): Promise<InitPlan> {
  return new Interview(talk, paint, known).run();
}

class Interview {
  readonly #prompter: TerminalPrompter;
  readonly #paint: Paint;
  readonly #known: KnownAnswers;
  readonly #answers: Map<AnsweredKey, string>;
  #isForced: boolean;

  constructor(talk: TerminalPrompter, paint: Paint, known: KnownAnswers) {
    this.#prompter = talk;
    this.#paint = paint;
    this.#known = known;
    this.#answers = new Map(known.answers);
    this.#isForced = known.isForced;
  }

  async run(): Promise<InitPlan> {
    this.#prompter.writeLine('Enter takes what stands in [brackets]; Ctrl-C leaves, and nothing is written.\n');
    const output = await this.#askOutput();
    for (const key of ['upstream.baseUrl', 'auth.url', 'auth.tokenPath', 'auth.clientId'] as const)
      await this.#ask(key);
    const secret = await this.#askSecretPlace(secretPathFor(output));
    await this.#askAudienceAndScope();
    await this.#ask('throttle.rate');
    return { answers: this.#answers, secret, output, isForced: this.#isForced };
  }

  /** Until the answer will do; one that was given as an option and is fine is not asked for. */
  async #ask(key: AnsweredKey): Promise<void> {
    const { prompt, hint, fallback }: Question = QUESTIONS[key];
    if (this.#answers.has(key) && this.#isValid(key)) return;
    const remark = fallback === undefined || fallback === '' ? hint && ` (${hint})` : ` [${fallback}]`;
    do {
      const text = (await this.#prompter.ask(`${prompt}${this.#paint('quiet', remark ?? '')}: `)) || fallback;
      if (text === undefined || text === '') this.#answers.delete(key);
      else this.#answers.set(key, text);
      if (text === '') return;
      if (text === undefined) this.#showWarning(ANSWER_REQUIRED);
    } while (!this.#answers.has(key) || !this.#isValid(key));
  }

  #isValid(key: AnsweredKey): boolean {
    const kind = this.#answers.has('auth.clientSecretFile') ? 'file' : 'environment';
    const fault = findFaultOf(key, this.#answers, { kind });
    if (fault !== undefined) this.#showWarning(fault);
    return fault === undefined;
  }

  async #askOutput(): Promise<string> {
    for (let given = this.#known.output; ; given = undefined) {
      const path =
        given ?? (await this.#prompter.ask(`Configuration file ${this.#paint('quiet', `[${DEFAULT_OUTPUT}]`)}: `));
      const output = path === '' ? DEFAULT_OUTPUT : path;
      if (!isExistingPath(dirname(output))) this.#showWarning(`there is no directory ${dirname(output)}`);
      else if (await this.#canWrite(output)) return output;
    }
  }

  /** Asked for each file that is there, so that one of them may be kept. */
  async #canWrite(path: string): Promise<boolean> {
    if (this.#known.isForced || !isExistingPath(path)) return true;
    const question = `${toSingleLine(path)} exists. Write over it? ${this.#paint('quiet', '[y/N]')} `;
    const mayWrite = /^y(es)?$/i.test(await this.#prompter.ask(question));
    this.#isForced ||= mayWrite;
    return mayWrite;
  }

  async #askSecretPlace(path: string): Promise<SecretLocation> {
    if (!this.#answers.has('auth.clientSecretFile')) {
      this.#prompter.writeLine('Where is the client secret to be? It is never written into the configuration file.');
      this.#prompter.writeLine(`  1  in a new file that only you can read: ${toSingleLine(path)}`);
      this.#prompter.writeLine('  2  in a file that is there already');
      this.#prompter.writeLine('  3  in the variable SIDECAR_CLIENT_SECRET, set by whoever starts the sidecar');
      const choice = await this.#askLocationChoice(path);
      if (choice === '3') return { kind: 'environment' };
      if (choice === '1') return this.#askSecret(path);
    }
    await this.#ask('auth.clientSecretFile');
    return { kind: 'file' };
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
      const secret = await this.#prompter.askSecret('Client secret (it is not shown): ');
      const place: SecretLocation = { kind: 'new-file', path, secret };
      const fault = secret === '' ? ANSWER_REQUIRED : findFaultOf('auth.clientSecret', this.#answers, place);
      if (fault === undefined) return place;
      this.#showWarning(fault);
    }
  }

  /** What the token is to be good for: an audience, scopes, or both. */
  async #askAudienceAndScope(): Promise<void> {
    const isGiven = this.#answers.has('auth.audience') || this.#answers.has('auth.scope');
    for (const key of ['auth.audience', 'auth.scope'] as const)
      if (!isGiven || this.#answers.has(key)) await this.#ask(key);
    if (this.#answers.has('auth.audience') || this.#answers.has('auth.scope')) return;
    this.#showWarning('an audience or a scope is needed: they say what the token is good for');
    await this.#askAudienceAndScope();
  }

  #showWarning(why: string): void {
    this.#prompter.writeLine(this.#paint('warning', `  ! ${toSingleLine(why)}`));
  }
}
