/** Makes the words of commands from the pieces that the quoting rules of a shell find: operators, redirections, the end of a command. Pure. */

export type Piece =
  /** A part of a word; `inner` is the text of a command substitution in it. */
  | { readonly kind: 'text'; readonly text: string; readonly inner?: string }
  /** Between two words; between two commands; before a file that is no word of the command. */
  | { readonly kind: 'blank' | 'end' | 'redirection' }
  | ScanFault;

/** Why a text is no sequence of commands. `fault` follows "the pasted text"; it quotes nothing. */
export type ScanFault =
  /** A quote is open, or the last line continues: more text may follow. */
  { readonly kind: 'incomplete'; readonly fault: string } | { readonly kind: 'refused'; readonly fault: string };

export type CommandWords = readonly string[];

export const OPEN_QUOTE: ScanFault = { kind: 'incomplete', fault: 'has a quote that is not closed' };
export const CONTINUED: ScanFault = { kind: 'incomplete', fault: 'ends with a line that continues' };

interface Commands {
  readonly commands: readonly CommandWords[];
  readonly substitutions: readonly string[];
}

/** Redirections are left out with their target. */
export function collectCommands(pieces: Iterable<Piece>): Commands | ScanFault {
  const commands: CommandWords[] = [];
  const substitutions: string[] = [];
  let words: string[] = [];
  /** Undefined between words: '' is a word in quotes. */
  let word: string | undefined;
  let isTarget = false;
  const endWord = (): void => {
    if (word === undefined) return;
    if (!isTarget) words.push(word);
    [word, isTarget] = [undefined, false];
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0) commands.push(words);
    [words, isTarget] = [[], false];
  };
  for (const piece of pieces) {
    if ('fault' in piece) return piece;
    if (piece.kind === 'text') {
      word = (word ?? '') + piece.text;
      if (piece.inner !== undefined) substitutions.push(piece.inner);
    } else if (piece.kind === 'end') endCommand();
    else {
      const isRedirection = piece.kind === 'redirection';
      // The descriptor in `2>&1`.
      if (isRedirection && /^\d$/.test(word ?? '')) word = undefined;
      endWord();
      isTarget ||= isRedirection;
    }
  }
  endCommand();
  return { commands, substitutions };
}
