/** Words of PowerShell as it passes them to a program. Expands nothing. Pure. */
import { CONTINUED, OPEN_QUOTE, WordScanner, matchAt } from './word-scanner.ts';
import type { ScanFault } from './word-scanner.ts';

/** PowerShell: the backtick escapes, quotes are doubled, and single quotes expand nothing. */
export class PowerShellScanner extends WordScanner {
  protected step(character: string): ScanFault | undefined {
    if (this.readSeparator(character)) return undefined;
    if (character === "'") return this.#readSingleQuoted();
    if (character === '"') return this.#readDoubleQuoted();
    if (character === '$') return this.readDollar();
    if (character === '`') return this.#readBacktick();
    this.add(character);
    this.at += 1;
    return undefined;
  }

  #readBacktick(): ScanFault | undefined {
    const [continued] = matchAt(/`[ \t]*(?:\n|$)/y, this.text, this.at);
    this.at += continued?.length ?? 2;
    if (continued === undefined) this.add(this.text.charAt(this.at - 1));
    else if (this.at >= this.text.length) return CONTINUED;
    return undefined;
  }

  #readSingleQuoted(): ScanFault | undefined {
    const [whole, quoted = ''] = matchAt(/'((?:[^']+|'')*)'/y, this.text, this.at);
    if (whole === undefined) return OPEN_QUOTE;
    const text = quoted.replaceAll("''", "'");
    // Windows PowerShell passes these backslashes on, and the C runtime of the program drops them: so is JSON written for it.
    this.add(/^\s*\{\s*\\"/.test(text) ? text.replaceAll('\\"', '"') : text);
    this.at += whole.length;
    return undefined;
  }

  #readDoubleQuoted(): ScanFault | undefined {
    this.add('');
    this.at += 1;
    while (this.at < this.text.length) {
      const character = this.text.charAt(this.at);
      if (this.startsWith('""') || character === '`') {
        this.add(this.text.charAt(this.at + 1));
        this.at += 2;
      } else if (character === '"') {
        this.at += 1;
        return undefined;
      } else if (character === '$') {
        const fault = this.readDollar();
        if (fault !== undefined) return fault;
      } else {
        this.add(character);
        this.at += 1;
      }
    }
    return OPEN_QUOTE;
  }
}
