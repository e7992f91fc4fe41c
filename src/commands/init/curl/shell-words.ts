/**
 * Splits pasted commands into words by the quoting rules of a POSIX shell (with `$'…'`) or of cmd.exe; PowerShell's are refused. Nothing is
 * executed or expanded: a variable or a command substitution stays in its word as a marked name. Pure.
 */
import { listCmdPieces } from './cmd-pieces.ts';
import { collectCommands, type CommandWords, type ScanFault } from './command-pieces.ts';
import { listPosixPieces } from './posix-pieces.ts';

export type CommandSplit =
  /** In order; those within `$(…)` come after the command that holds them. */
  { readonly kind: 'split'; readonly commands: readonly CommandWords[] } | ScanFault;

/** More than any browser copies with all cookies. */
const MAX_CHARS = 256 * 1024;
const MAX_SUBSTITUTION_DEPTH = 3;

/** Splits a text of one or several commands. Never throws. */
export function splitCommands(text: string): CommandSplit {
  if (text.length > MAX_CHARS) return { kind: 'refused', fault: `is longer than ${String(MAX_CHARS / 1024)} KiB` };
  const plain = text
    .replaceAll('\r\n', '\n')
    .replace(/^\uFEFF/, '')
    .replaceAll(CODE_FENCE, '');
  // The noncharacters are marks of ours.
  const control = /[^\P{Cc}\t\n]|[\uFDD0-\uFDD2]/u.exec(plain)?.[0];
  if (control !== undefined)
    return { kind: 'refused', fault: `holds the control character U+${formatCodePoint(control)}` };
  const split = splitText(dropPrompts(plain), 0);
  if (!isPowerShell(plain)) return split;
  // The rest of a pasted command must not be taken for the next input.
  const isContinued = split.kind === 'incomplete' || /`\s*$/.test(plain);
  return { kind: isContinued ? 'incomplete' : 'refused', fault: POWERSHELL_FAULT };
}

const POWERSHELL_FAULT = 'is a PowerShell command; paste the form for a POSIX shell (bash) or for cmd.exe';

/** A prompt, an assignment, a variable or a command that no other shell has, a line continued by a backtick, or single quotes on Windows. */
function isPowerShell(text: string): boolean {
  if (isContinuedByBackslash(text) || isForCmd(text)) return false;
  const lines = text.split('\n').map((line) => line.trimEnd());
  return (
    lines.some((line) => /[ \t]`$/.test(line) || (line.endsWith('`') && line.split('`').length % 2 === 0)) ||
    /^\s*PS[ >]|^\s*\$\w+\s*=|\$\{?env:|\bInvoke-(?:RestMethod|WebRequest)\b/i.test(text) ||
    /\bcurl\.exe\b[^"']*'/i.test(text)
  );
}

function formatCodePoint(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}

const CODE_FENCE = /^[ \t]*```.*\n?/gm;

/** Removes what stands before a command in a terminal: prompts, the `>` of continued lines. */
function dropPrompts(text: string): string {
  const [first = '', ...rest] = text.split('\n');
  const areContinued = rest.length > 0 && rest.every((line) => /^(?:> |\s*$)/.test(line));
  const bare = [first, ...(areContinued ? rest.map((line) => line.replace(/^> /, '')) : rest)].join('\n');
  return bare.replace(/^\s*(?:[A-Za-z]:\\[^>\n"']*>|[$%>#])\s*(?=curl)/, '');
}

/** By what continues a line. A single line in double quotes is nearly the same to both shells. */
function splitText(text: string, depth: number): CommandSplit {
  const isCmd = !isContinuedByBackslash(text) && isForCmd(text);
  const found = collectCommands(isCmd ? listCmdPieces(text) : listPosixPieces(text));
  if ('fault' in found) return found;
  const commands = [...found.commands];
  for (const inner of found.substitutions) {
    if (depth >= MAX_SUBSTITUTION_DEPTH || !/\bcurl/i.test(inner)) continue;
    const split = splitText(inner, depth + 1);
    if (split.kind !== 'split') return split;
    commands.push(...split.commands);
  }
  return { kind: 'split', commands };
}

function isContinuedByBackslash(text: string): boolean {
  return /\\[ \t]*\n/.test(text);
}

/** A browser's copy for cmd.exe escapes every quote. */
function isForCmd(text: string): boolean {
  return /\^[ \t]*\n/.test(text) || /^[^"']*\^"/.test(text);
}
