/**
 * What the scanners of all shells have in common: words, operators, redirections, variables and the end of a command. Quotes and escapes
 * are those of each shell. Pure.
 */
import { markExpansion } from './expansion.ts';

/** The words of one command. */
export type CommandWords = readonly string[];

/** Why a text is no sequence of commands. `fault` follows "the pasted text"; it quotes nothing. */
export type ScanFault =
  /** A quote is open, or the last line continues: more text may follow. */
  { readonly kind: 'incomplete'; readonly fault: string } | { readonly kind: 'refused'; readonly fault: string };

export const OPEN_QUOTE: ScanFault = { kind: 'incomplete', fault: 'has a quote that is not closed' };
const OPEN_SUBSTITUTION: ScanFault = { kind: 'incomplete', fault: 'has a $(, ${ or ` that is not closed' };
export const CONTINUED: ScanFault = { kind: 'incomplete', fault: 'ends with a line that continues' };
/** What both have in common: words, operators, and the end of a command. */
export abstract class WordScanner {
  readonly commands: CommandWords[] = [];
  /** Texts of command substitutions. */
  readonly substitutions: string[] = [];
  protected readonly text: string;
  protected at = 0;
  #words: string[] = [];
  /** Undefined between words: '' is a word in quotes. */
  #word: string[] | undefined;
  #isRedirected = false;

  constructor(text: string) {
    this.text = text;
  }

  run(): ScanFault | undefined {
    while (this.at < this.text.length) {
      const fault = this.step(this.text.charAt(this.at));
      if (fault !== undefined) return fault;
    }
    this.endCommand();
    return undefined;
  }

  /** Reads from one character on, outside of quotes. */
  protected abstract step(character: string): ScanFault | undefined;

  protected add(text: string): void {
    (this.#word ??= []).push(text);
  }

  protected get isInWord(): boolean {
    return this.#word !== undefined;
  }

  protected startsWith(text: string): boolean {
    return this.text.startsWith(text, this.at);
  }

  /** Blanks, operators and comments. False: the character belongs to a word. */
  protected readSeparator(character: string): boolean {
    if (character === ' ' || character === '\t' || character === '\u00A0') this.#endWord();
    else if (/[\n;&|]/.test(character)) this.endCommand();
    else if (character === '<' || character === '>') return this.#readRedirection(character);
    else return false;
    this.at += 1;
    return true;
  }

  protected endCommand(): void {
    this.#endWord();
    if (this.#words.length > 0) this.commands.push(this.#words);
    this.#words = [];
    this.#isRedirected = false;
  }

  /** `<client_id>` of a document is a word; `>out.json` and `2>&1` are left out with their target. */
  #readRedirection(character: string): boolean {
    const [placeholder] = /^<[a-z][\w-]*>/i.exec(this.text.slice(this.at, this.at + MAX_PLACEHOLDER_CHARS)) ?? [];
    if (character === '<' && placeholder !== undefined) {
      this.add(placeholder);
      this.at += placeholder.length;
      return true;
    }
    if (/^\d$/.test(this.#word?.join('') ?? '')) this.#word = undefined;
    this.#endWord();
    while (/[<>&]/.test(this.text.charAt(this.at))) this.at += 1;
    this.#isRedirected = true;
    return true;
  }

  #endWord(): void {
    if (this.#word === undefined) return;
    if (!this.#isRedirected) this.#words.push(this.#word.join(''));
    this.#isRedirected = false;
    this.#word = undefined;
  }

  /** Reads a name after `$`, `${…}`, `$(…)`; a `$` before anything else is a character. */
  protected readDollar(): ScanFault | undefined {
    const next = this.text.charAt(this.at + 1);
    if (next === '(') return this.#readSubstitution();
    if (next === '{') {
      const end = this.text.indexOf('}', this.at);
      if (end < 0) return OPEN_SUBSTITUTION;
      this.addMark(/^\w*/.exec(this.text.slice(this.at + 2, end))?.[0] ?? '');
      this.at = end + 1;
      return undefined;
    }
    const [whole, name] = /^\$([a-z_]\w*|\d)/i.exec(this.text.slice(this.at, this.at + MAX_NAME_CHARS)) ?? ['$'];
    if (name === undefined) this.add('$');
    else this.addMark(name);
    this.at += whole.length;
    return undefined;
  }

  protected readBackticks(): ScanFault | undefined {
    const end = this.text.indexOf('`', this.at + 1);
    if (end < 0) return OPEN_SUBSTITUTION;
    this.addMark('');
    this.substitutions.push(this.text.slice(this.at + 1, end));
    this.at = end + 1;
    return undefined;
  }

  /** Up to the bracket that closes it; brackets within quotes do not count. */
  #readSubstitution(): ScanFault | undefined {
    let [depth, quote, end] = [0, '', this.at + 1];
    for (; end < this.text.length; end++) {
      const character = this.text.charAt(end);
      if (character === '\\' && quote !== "'") end += 1;
      else if (quote !== '') quote = character === quote ? '' : quote;
      else if (character === "'" || character === '"') quote = character;
      else if (character === '(') depth += 1;
      else if (character === ')' && --depth === 0) break;
    }
    if (end >= this.text.length) return OPEN_SUBSTITUTION;
    this.addMark('');
    this.substitutions.push(this.text.slice(this.at + 2, end));
    this.at = end + 1;
    return undefined;
  }

  protected addMark(name: string): void {
    this.add(markExpansion(name));
  }
}

const MAX_NAME_CHARS = 100;
const MAX_PLACEHOLDER_CHARS = 100;

/** The match of a sticky pattern at an index, or an empty list. */
export function matchAt(pattern: RegExp, text: string, at: number): readonly (string | undefined)[] {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? [];
}
