/**
 * The pieces of cmd.exe, whose caret escapes outside of its quotes, and then of the Microsoft C runtime, which does not see the carets.
 * Expands nothing. Pure.
 */
import { CONTINUED, OPEN_QUOTE, type Piece } from './command-pieces.ts';
import { markExpansion } from './placeholders.ts';

/** Marks the next character as one that cmd.exe reads itself. No pasted text holds it, since such a text is refused. */
const OPERATOR = '\uFDD2';

const VARIABLE = /(?<!\^)%((?![\da-f]{2})[a-z_]\w+)%/gi;
const CMD_SYNTAX = /("[^"\n]*"?|<[a-z][\w-]{0,97}>)|(\^[ \t]*\n?$)|\^[ \t]*\n(\n?)|\^([^])|[\n&|]|[<>][<>&]*/gi;
const RUNTIME_SYNTAX = /\uFDD2([^])|(\\*)"|[ \t]+|\\+|[^\uFDD2\\" \t]+/g;

/** Nothing is read after the first fault. */
export function* listCmdPieces(text: string): Generator<Piece> {
  let isQuoted = false;
  let closedAt = -1;
  for (const { index, 0: whole, 1: operator, 2: backslashes } of readAsCmd(text).matchAll(RUNTIME_SYNTAX)) {
    if (operator !== undefined) yield readOperator(operator, isQuoted);
    else if (backslashes === undefined) {
      const isBlank = !isQuoted && /^[ \t]/.test(whole);
      yield isBlank ? { kind: 'blank' } : { kind: 'text', text: whole };
    } else {
      // 2n backslashes before a quote are n, and one more makes the quote a character; so do two quotes within quotes.
      const isEscaped = backslashes.length % 2 === 1;
      const isCharacter = isEscaped || (whole === '"' && index === closedAt);
      yield { kind: 'text', text: backslashes.slice(0, backslashes.length / 2) + (isCharacter ? '"' : '') };
      if (!isEscaped) isQuoted = !isQuoted;
      closedAt = isEscaped || isQuoted ? -1 : index + whole.length;
    }
  }
  if (isQuoted) yield OPEN_QUOTE;
}

/** The text as the runtime gets it, with marked operators. */
function readAsCmd(text: string): string {
  const expanded = text.replaceAll(VARIABLE, (_, name: string) => markExpansion(name));
  return expanded.replaceAll(CMD_SYNTAX, (whole, ...groups: (string | undefined)[]) => {
    const [unchanged, end, afterLine, escaped] = groups;
    if (end !== undefined) return `${OPERATOR}^`;
    // The caret also escapes the character after the line end: an empty line is a line end in the word.
    return unchanged ?? afterLine ?? escaped ?? OPERATOR + whole.charAt(0);
  });
}

function readOperator(operator: string, isQuoted: boolean): Piece {
  if (operator === '^') return CONTINUED;
  if (operator === '\n' && isQuoted) return OPEN_QUOTE;
  return { kind: /[<>]/.test(operator) ? 'redirection' : 'end' };
}
