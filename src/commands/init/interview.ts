/**
 * Asks a person for what was not given as an option, one thing at a time, with a default where there is one. An answer that will not
 * do is asked for again at once, with the reason.
 */
import { dirname } from 'node:path';
import { onOneLine } from '../../config/load/problems.ts';
import type { Paint } from '../paint.ts';
import { faultOf } from './answers.ts';
import type { AnsweredKey, Answers, SecretPlace } from './answers.ts';
import type { Conversation } from './conversation.ts';
import { DEFAULT_OUTPUT, isThere, secretPathFor } from './files.ts';

/** What is known from options. */
export interface Known {
  readonly answers: Answers;
  readonly output: string | undefined;
  /** Files that exist may be written over. */
  readonly isForced: boolean;
}

/** All that is needed to write the files. */
export interface Plan {
  readonly answers: Answers;
  readonly secret: SecretPlace;
  readonly output: string;
  readonly isForced: boolean;
}

interface Question {
  readonly words: string;
  /** Behind the words, in parentheses. */
  readonly hint?: string;
  /** Taken when the answer is empty; '' leaves the setting out. Default: an answer is needed. */
  readonly fallback?: string;
}

const QUESTIONS = {
  'upstream.baseUrl': { words: "Base URL of the partner's API", hint: 'such as https://api.example.com/v1' },
  'auth.url': { words: 'Base URL of the authorization server', hint: 'such as https://login.example.com' },
  'auth.tokenPath': { words: 'Path of its token endpoint', fallback: '/oauth/token' },
  'auth.clientId': { words: 'Client id' },
  'auth.clientSecretFile': { words: 'File that holds the client secret' },
  'auth.audience': { words: 'Audience', hint: 'Enter alone: none', fallback: '' },
  'auth.scope': { words: 'Scopes, with a blank between two', hint: 'Enter alone: none', fallback: '' },
  'throttle.rate': { words: 'Calls per second, or auto to learn what is allowed', fallback: 'auto' },
} as const satisfies Record<AnsweredKey, Question>;

const AN_ANSWER_IS_NEEDED = 'an answer is needed';

/** @throws ConversationEnded */
export async function interview(talk: Conversation, paint: Paint, known: Known): Promise<Plan> {
  return new Interview(talk, paint, known).run();
}

class Interview {
  readonly #talk: Conversation;
  readonly #paint: Paint;
  readonly #known: Known;
  readonly #answers: Map<AnsweredKey, string>;
  #isForced: boolean;

  constructor(talk: Conversation, paint: Paint, known: Known) {
    this.#talk = talk;
    this.#paint = paint;
    this.#known = known;
    this.#answers = new Map(known.answers);
    this.#isForced = known.isForced;
  }

  async run(): Promise<Plan> {
    this.#talk.tell('Enter takes what stands in [brackets]; Ctrl-C leaves, and nothing is written.\n');
    const output = await this.#askOutput();
    for (const key of ['upstream.baseUrl', 'auth.url', 'auth.tokenPath', 'auth.clientId'] as const)
      await this.#ask(key);
    const secret = await this.#askSecretPlace(secretPathFor(output));
    await this.#askPurpose();
    await this.#ask('throttle.rate');
    return { answers: this.#answers, secret, output, isForced: this.#isForced };
  }

  /** Until the answer will do; one that was given as an option and is fine is not asked for. */
  async #ask(key: AnsweredKey): Promise<void> {
    const { words, hint, fallback }: Question = QUESTIONS[key];
    if (this.#answers.has(key) && this.#isFine(key)) return;
    const remark = fallback === undefined || fallback === '' ? hint && ` (${hint})` : ` [${fallback}]`;
    do {
      const text = (await this.#talk.ask(`${words}${this.#paint('quiet', remark ?? '')}: `)) || fallback;
      if (text === undefined || text === '') this.#answers.delete(key);
      else this.#answers.set(key, text);
      if (text === '') return;
      if (text === undefined) this.#complain(AN_ANSWER_IS_NEEDED);
    } while (!this.#answers.has(key) || !this.#isFine(key));
  }

  #isFine(key: AnsweredKey): boolean {
    const kind = this.#answers.has('auth.clientSecretFile') ? 'file' : 'environment';
    const fault = faultOf(key, this.#answers, { kind });
    if (fault !== undefined) this.#complain(fault);
    return fault === undefined;
  }

  async #askOutput(): Promise<string> {
    for (let given = this.#known.output; ; given = undefined) {
      const path =
        given ?? (await this.#talk.ask(`Configuration file ${this.#paint('quiet', `[${DEFAULT_OUTPUT}]`)}: `));
      const output = path === '' ? DEFAULT_OUTPUT : path;
      if (!isThere(dirname(output))) this.#complain(`there is no directory ${dirname(output)}`);
      else if (await this.#mayWrite(output)) return output;
    }
  }

  /** Asked for each file that is there, so that one of them may be kept. */
  async #mayWrite(path: string): Promise<boolean> {
    if (this.#known.isForced || !isThere(path)) return true;
    const question = `${onOneLine(path)} exists. Write over it? ${this.#paint('quiet', '[y/N]')} `;
    const mayWrite = /^y(es)?$/i.test(await this.#talk.ask(question));
    this.#isForced ||= mayWrite;
    return mayWrite;
  }

  async #askSecretPlace(path: string): Promise<SecretPlace> {
    if (!this.#answers.has('auth.clientSecretFile')) {
      this.#talk.tell('Where is the client secret to be? It is never written into the configuration file.');
      this.#talk.tell(`  1  in a new file that only you can read: ${onOneLine(path)}`);
      this.#talk.tell('  2  in a file that is there already');
      this.#talk.tell('  3  in the variable SIDECAR_CLIENT_SECRET, set by whoever starts the sidecar');
      const choice = await this.#choose(path);
      if (choice === '3') return { kind: 'environment' };
      if (choice === '1') return this.#askSecret(path);
    }
    await this.#ask('auth.clientSecretFile');
    return { kind: 'file' };
  }

  async #choose(path: string): Promise<'1' | '2' | '3'> {
    for (;;) {
      const choice = (await this.#talk.ask(`1, 2 or 3 ${this.#paint('quiet', '[1]')}: `)) || '1';
      if (choice === '2' || choice === '3') return choice;
      if (choice === '1' && (await this.#mayWrite(path))) return choice;
    }
  }

  async #askSecret(path: string): Promise<SecretPlace> {
    for (;;) {
      const secret = await this.#talk.askSecret('Client secret (it is not shown): ');
      const place: SecretPlace = { kind: 'new-file', path, secret };
      const fault = secret === '' ? AN_ANSWER_IS_NEEDED : faultOf('auth.clientSecret', this.#answers, place);
      if (fault === undefined) return place;
      this.#complain(fault);
    }
  }

  /** What the token is to be good for: an audience, scopes, or both. */
  async #askPurpose(): Promise<void> {
    const isGiven = this.#answers.has('auth.audience') || this.#answers.has('auth.scope');
    for (const key of ['auth.audience', 'auth.scope'] as const)
      if (!isGiven || this.#answers.has(key)) await this.#ask(key);
    if (this.#answers.has('auth.audience') || this.#answers.has('auth.scope')) return;
    this.#complain('an audience or a scope is needed: they say what the token is good for');
    await this.#askPurpose();
  }

  #complain(why: string): void {
    this.#talk.tell(this.#paint('warning', `  ! ${onOneLine(why)}`));
  }
}
