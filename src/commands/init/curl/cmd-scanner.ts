/** Words of cmd.exe as a program of the Microsoft C runtime receives them. Expands nothing. Pure. */
import { CONTINUED, OPEN_QUOTE, WordScanner, matchAt } from './word-scanner.ts';
import type { ScanFault } from './word-scanner.ts';

/** cmd.exe, whose caret escapes outside of quotes, and then the argument rules of the Microsoft C runtime. */
export class CmdScanner extends WordScanner {
  /** Of cmd.exe: an escaped quote does not begin one. */
  #isQuotedForCmd = false;
  /** Of the C runtime, which does not see the carets. */
  #isQuoted = false;

  override run(): ScanFault | undefined {
    return super.run() ?? (this.#isQuoted ? OPEN_QUOTE : undefined);
  }

  protected step(character: string): ScanFault | undefined {
    if (character === '^' && !this.#isQuotedForCmd) return this.#readCaret();
    if (character === '\n' && this.#isQuoted) return OPEN_QUOTE;
    if (!this.#isQuotedForCmd && /[\n&|<>]/.test(character) && this.readSeparator(character)) return undefined;
    const [variable, name] = matchAt(/%((?![\da-f]{2})[a-z_]\w+)%/iy, this.text, this.at);
    if (variable !== undefined) {
      this.addMark(name ?? '');
      this.at += variable.length;
      return undefined;
    }
    if (character === '"') this.#isQuotedForCmd = !this.#isQuotedForCmd;
    this.#readForRuntime(character, 1);
    return undefined;
  }

  #readCaret(): ScanFault | undefined {
    const next = this.text.charAt(this.at + 1);
    const [continued] = matchAt(/\^[ \t]*(?:\n|$)/y, this.text, this.at);
    if (continued === undefined) {
      this.#readForRuntime(next, 2);
      return undefined;
    }
    this.at += continued.length;
    if (this.at >= this.text.length) return CONTINUED;
    // The caret also escapes the character after the line end: an empty line is a line end in the word.
    if (this.startsWith('\n')) this.#readForRuntime('\n', 1);
    return undefined;
  }

  /** @param length of the character in the text, with its caret */
  #readForRuntime(character: string, length: number): void {
    if (character === '\\') {
      this.#readBackslashes();
      return;
    }
    this.at += length;
    if (character === '"') this.#readQuote();
    else if ((character === ' ' || character === '\t') && !this.#isQuoted) {
      this.at -= 1;
      this.readSeparator(character);
    } else this.add(character);
  }

  /** 2n backslashes before a quote are n, and one more makes the quote a character. */
  #readBackslashes(): void {
    const [run = '\\', quote] = matchAt(/\\+(\^?")?/y, this.text, this.at);
    const count = run.length - (quote?.length ?? 0);
    if (quote === undefined || count % 2 === 0) {
      this.add('\\'.repeat(quote === undefined ? count : count / 2));
      this.at += count;
      return;
    }
    this.add(`${'\\'.repeat((count - 1) / 2)}"`);
    this.at += run.length;
    if (quote === '"') this.#isQuotedForCmd = !this.#isQuotedForCmd;
  }

  #readQuote(): void {
    this.add('');
    const [second] = matchAt(/\^?"/y, this.text, this.at);
    if (!this.#isQuoted || second === undefined) {
      this.#isQuoted = !this.#isQuoted;
      return;
    }
    // Two within quotes are one character.
    if (second === '"') this.#isQuotedForCmd = !this.#isQuotedForCmd;
    this.add('"');
    this.at += second.length;
  }
}
