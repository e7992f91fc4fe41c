/**
 * Splits pasted commands into words by the quoting rules of a POSIX shell (with `$'…'`); those of PowerShell and cmd.exe are refused.
 * Nothing is executed or expanded: a variable stays in its word as a marked name. Pure.
 */
import { listPosixPieces, type Piece, type ScanFault } from './posix-pieces.ts';

export type CommandWords = readonly string[];

export type CommandSplit = { readonly kind: 'split'; readonly commands: readonly CommandWords[] } | ScanFault;

/** More than any browser copies with all cookies. */
const MAX_CHARS = 256 * 1024;

/** Splits a text of one or several commands. Never throws. */
export function splitCommands(text: string): CommandSplit {
  if (text.length > MAX_CHARS) return { kind: 'refused', fault: `is longer than ${String(MAX_CHARS / 1024)} KiB` };
  const plain = text
    .replaceAll('\r\n', '\n')
    .replace(/^\uFEFF/, '')
    .replaceAll(CODE_FENCE, '');
  // The noncharacters are marks of ours.
  const control = /[^\P{Cc}\t\n]|[\uFDD0-\uFDD1]/u.exec(plain)?.[0];
  if (control !== undefined)
    return { kind: 'refused', fault: `holds the control character U+${formatCodePoint(control)}` };
  const split = collectCommands(listPosixPieces(plain));
  return split.kind === 'refused' && isUnfinished(plain) ? { kind: 'incomplete', fault: split.fault } : split;
}

const CODE_FENCE = /^[ \t]*```.*\n?/gm;

/** Redirections are left out with their target, and so are commands that a pipe feeds. */
function collectCommands(pieces: Iterable<Piece>): CommandSplit {
  const commands: CommandWords[] = [];
  let words: string[] = [];
  /** Undefined between words: '' is a word in quotes. */
  let word: string | undefined;
  let [isTarget, isFed] = [false, false];
  const endWord = (): void => {
    if (word === undefined) return;
    if (!isTarget) words.push(word);
    [word, isTarget] = [undefined, false];
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0 && !isFed) commands.push(words);
    [words, isTarget, isFed] = [[], false, false];
  };
  for (const piece of pieces) {
    if ('fault' in piece) return piece;
    if (piece.kind === 'text') word = (word ?? '') + piece.text;
    else if (piece.kind === 'end' || piece.kind === 'pipe') {
      endCommand();
      isFed = piece.kind === 'pipe';
    } else {
      const isRedirection = piece.kind === 'redirection';
      // The descriptor in `2>&1`.
      if (isRedirection && /^\d$/.test(word ?? '')) word = undefined;
      endWord();
      isTarget ||= isRedirection;
    }
  }
  endCommand();
  return { kind: 'split', commands };
}

/** Whether more of a refused text may follow, which must not be taken for the next input. */
function isUnfinished(text: string): boolean {
  const unquoted = text.replaceAll(/'[^']*'|"[^"]*"/g, '');
  return /["']/.test(unquoted) || /[\\`^]\s*$/.test(text) || text.lastIndexOf('$(') > text.lastIndexOf(')');
}

function formatCodePoint(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}
