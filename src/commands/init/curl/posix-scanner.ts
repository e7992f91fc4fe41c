/** Words of a POSIX shell (POSIX.1-2024 XCU 2.2): single and double quotes, backslash and `$'…'`. Expands nothing. Pure. */
import { CONTINUED, OPEN_QUOTE, WordScanner, matchAt } from './word-scanner.ts';
import type { ScanFault } from './word-scanner.ts';

const TYPOGRAPHIC: ScanFault = {
  kind: 'refused',
  fault: 'has typographic quotes, which no shell understands; replace them by straight ones',
};

/** POSIX.1-2024 XCU §2.2: single and double quotes, backslash and `$'…'`. */
export class PosixScanner extends WordScanner {
  protected step(character: string): ScanFault | undefined {
    if (/[“”‘’]/.test(character)) return TYPOGRAPHIC;
    if (character === '#' && !this.isInWord) {
      this.#skipComment();
      return undefined;
    }
    if (this.readSeparator(character)) return undefined;
    switch (character) {
      case '(':
      case ')':
        this.endCommand();
        this.at += 1;
        return undefined;
      case "'":
        return this.#readSingleQuoted();
      case '"':
        return this.#readDoubleQuoted();
      case '`':
        return this.readBackticks();
      case '$':
        if (this.startsWith("$'")) return this.#readAnsiQuoted();
        if (this.startsWith('$"')) this.at += 1;
        return this.text.charAt(this.at) === '"' ? this.#readDoubleQuoted() : this.readDollar();
      case '\\':
        return this.#readEscaped();
      default:
        this.#readPlain();
        return undefined;
    }
  }

  #skipComment(): void {
    const end = this.text.indexOf('\n', this.at);
    this.at = end < 0 ? this.text.length : end;
  }

  #readPlain(): void {
    const [plain = this.text.charAt(this.at)] = matchAt(/[^\s;&|<>()'"`$\\#“”‘’]+/y, this.text, this.at);
    this.add(plain);
    this.at += plain.length;
  }

  #readEscaped(): ScanFault | undefined {
    // Documents often leave a blank after the backslash of a continued line.
    const [continued] = matchAt(/\\(?:[ \t]+(?=\n[ \t]*-))?(?:\n|$)/y, this.text, this.at);
    if (continued === undefined) {
      const character = String.fromCodePoint(this.text.codePointAt(this.at + 1) ?? 0);
      this.add(character);
      this.at += 1 + character.length;
      return undefined;
    }
    this.at += continued.length;
    return continued.endsWith('\n') && this.at < this.text.length ? undefined : CONTINUED;
  }

  #readSingleQuoted(): ScanFault | undefined {
    const end = this.text.indexOf("'", this.at + 1);
    if (end < 0) return OPEN_QUOTE;
    this.add(this.text.slice(this.at + 1, end));
    this.at = end + 1;
    return undefined;
  }

  #readDoubleQuoted(): ScanFault | undefined {
    this.add('');
    this.at += 1;
    while (this.at < this.text.length) {
      const character = this.text.charAt(this.at);
      if (character === '"') {
        this.at += 1;
        return undefined;
      }
      const fault = this.#readWithinDoubleQuotes(character);
      if (fault !== undefined) return fault;
    }
    return OPEN_QUOTE;
  }

  #readWithinDoubleQuotes(character: string): ScanFault | undefined {
    if (character === '$') return this.readDollar();
    if (character === '`') return this.readBackticks();
    const [escape] = matchAt(/\\[$`"\\\n]/y, this.text, this.at);
    if (escape !== undefined) this.add(escape === '\\\n' ? '' : escape.slice(1));
    const length = escape?.length ?? matchAt(/[^"$`\\]+/y, this.text, this.at)[0]?.length ?? 1;
    if (escape === undefined) this.add(this.text.slice(this.at, this.at + length));
    this.at += length;
    return undefined;
  }

  #readAnsiQuoted(): ScanFault | undefined {
    const [whole, quoted = ''] = matchAt(/\$'((?:[^'\\]|\\[^])*)'/y, this.text, this.at);
    if (whole === undefined) return OPEN_QUOTE;
    this.add(decodeAnsiQuoted(quoted));
    this.at += whole.length;
    return undefined;
  }
}

const ANSI_ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  e: '\u001B',
  E: '\u001B',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** `\xHH` and `\nnn` are bytes of UTF-8; a NUL ends the text, as in a shell. */
function decodeAnsiQuoted(quoted: string): string {
  const parts = quoted.matchAll(
    /\\x([\da-f]{1,2})|\\([0-7]{1,3})|\\u([\da-f]{1,4})|\\U([\da-f]{1,8})|\\c([^])|\\([^])|([^\\]+)/gi,
  );
  const bytes = [...parts].map(([whole, hex, octal, short, long, control, other, plain]) => {
    const isByte = whole.startsWith('\\x') ? hex : undefined;
    if (isByte !== undefined) return Uint8Array.of(Number.parseInt(isByte, 16));
    if (octal !== undefined) return Uint8Array.of(Number.parseInt(octal, 8) & 0xff);
    const point = short ?? long;
    return new TextEncoder().encode(plain ?? decodeEscape(whole, point, control, other));
  });
  return new TextDecoder().decode(Buffer.concat(bytes)).split('\0', 1)[0] ?? '';
}

function decodeEscape(
  whole: string,
  point: string | undefined,
  control: string | undefined,
  other: string | undefined,
): string {
  if (point !== undefined) {
    const value = Number.parseInt(point, 16);
    return value <= 0x10ffff ? String.fromCodePoint(value) : '\uFFFD';
  }
  if (control !== undefined) return String.fromCodePoint((control.codePointAt(0) ?? 0) & 0x1f);
  if (other === undefined) return whole;
  return ANSI_ESCAPES[other] ?? (/["'?\\]/.test(other) ? other : whole);
}
