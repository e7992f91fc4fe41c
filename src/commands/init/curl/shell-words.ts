/**
 * Splits pasted commands into words by the quoting rules of a POSIX shell (with `$'…'`), of cmd.exe or of PowerShell. Nothing is executed
 * or expanded: a variable or a command substitution stays in its word as a marked name. Pure.
 */
import { CmdScanner } from './cmd-scanner.ts';
import { PosixScanner } from './posix-scanner.ts';
import { PowerShellScanner } from './powershell-scanner.ts';
import type { CommandWords, ScanFault, WordScanner } from './word-scanner.ts';

export type CommandSplit =
  /** In order; those within `$(…)` come after the command that holds them. */
  { readonly kind: 'split'; readonly commands: readonly CommandWords[] } | ScanFault;

/** More than any browser copies with all cookies. */
const MAX_CHARS = 256 * 1024;
const MAX_SUBSTITUTION_DEPTH = 3;

/** Splits a text of one or several commands. Never throws. */
export function splitCommands(text: string): CommandSplit {
  if (text.length > MAX_CHARS) return { kind: 'refused', fault: `is longer than ${String(MAX_CHARS / 1024)} KiB` };
  const plain = text.replaceAll('\r\n', '\n').replace(/^\uFEFF/, '');
  const control = /[^\P{Cc}\t\n]|[\uFDD0\uFDD1]/u.exec(plain)?.[0];
  if (control !== undefined)
    return { kind: 'refused', fault: `holds the control character U+${formatCodePoint(control)}` };
  return scan(dropPrompts(plain), 0);
}

function formatCodePoint(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}

/** Removes what stands around a command in a document or in a terminal: code fences, prompts, the `>` of continued lines. */
function dropPrompts(text: string): string {
  const lines = text.split('\n').filter((line) => !/^\s*```/.test(line));
  const [first = '', ...rest] = lines;
  const areContinued = rest.length > 0 && rest.every((line) => /^(?:> |\s*$)/.test(line));
  const bare = [first, ...(areContinued ? rest.map((line) => line.replace(/^> /, '')) : rest)].join('\n');
  return bare.replace(/^\s*(?:PS )?(?:[A-Za-z]:\\[^>\n"']*>|[$%>#])\s*(?=curl)/, '');
}

function scan(text: string, depth: number): CommandSplit {
  const Scanner = selectScanner(text);
  const scanner = new Scanner(text);
  const fault = scanner.run();
  if (fault !== undefined) return fault;
  const commands: CommandWords[] = [...scanner.commands];
  for (const inner of scanner.substitutions) {
    if (depth >= MAX_SUBSTITUTION_DEPTH || !/\bcurl/i.test(inner)) continue;
    const split = scan(inner, depth + 1);
    if (split.kind !== 'split') return split;
    commands.push(...split.commands);
  }
  return { kind: 'split', commands };
}

/** By what continues a line. A single line in double quotes is nearly the same to all three. */
function selectScanner(text: string): new (text: string) => WordScanner {
  if (/\\[ \t]*\n/.test(text)) return PosixScanner;
  // A browser's copy for cmd.exe escapes every quote.
  if (/\^[ \t]*\n/.test(text) || /^[^"']*\^"/.test(text)) return CmdScanner;
  return /`[ \t]*\n[ \t]*\S/.test(text) || /\bcurl\.exe\b[^"']*'/i.test(text) ? PowerShellScanner : PosixScanner;
}
