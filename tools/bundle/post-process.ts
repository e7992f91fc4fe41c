/** The last step of the build: rewrites the text of a bundled file. */
import { parseAst } from 'rolldown/parseAst';

/** Replaces the text between two offsets. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A node of the syntax tree (ESTree). */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

interface Import extends Node {
  readonly source: { readonly value: string };
  readonly specifiers: readonly ImportedName[];
}

interface ImportedName {
  readonly type: string;
  readonly local: { readonly name: string };
  /** Of named ones only. */
  readonly imported?: { readonly name: string };
}

/** Nodes that start on a line of their own. A block does not, its statements do. */
const OWN_LINE_NODE = /^(?!Block|Empty|Import).*(?:Statement|Declaration)$|^(?:MethodDefinition|PropertyDefinition)$/;

/**
 * In ASCII, each statement on a line, and built-in modules looked up instead of imported.
 * - Node.js shows the line of an uncaught error, and a stack names lines: one line of 200 kB is useless.
 * - An import reads all that a module exports, and much of Node.js is loaded when it is first read: 2 MB that are not used.
 */
export function postProcess(code: string): string {
  const text = escapeNonAscii(code);
  const edits: Edit[] = [];
  walk(parseAst(text), (node) => {
    if (isImport(node) && node.source.value.startsWith('node:'))
      edits.push({ start: node.start, end: node.end, text: `\n${toBuiltinLookup(node)}` });
    else if (OWN_LINE_NODE.test(node.type)) edits.push({ start: node.start, end: node.start, text: '\n' });
  });
  return applyEdits(edits, text).trimStart();
}

/** V8 stores a text with two bytes per character if one of them is not Latin-1. A backslash before such a character is dropped. */
function escapeNonAscii(code: string): string {
  return code.replace(/(\\*)([^\0-\x7f])/g, (_, slashes: string, unit: string) => {
    const escape = `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    return slashes.slice(slashes.length % 2) + escape;
  });
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function isImport(node: Node): node is Import {
  return node.type === 'ImportDeclaration';
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const child of Object.values(node).flat() as unknown[]) if (isNode(child)) walk(child, visit);
}

/** A built-in module is its own default export, and near enough to its namespace. */
function toBuiltinLookup({ source, specifiers }: Import): string {
  const module = `process.getBuiltinModule("${source.value}")`;
  if (specifiers.length === 0) return `${module};`;
  const isNamed = ({ imported }: ImportedName): boolean => imported !== undefined && imported.name !== 'default';
  const whole = specifiers.filter((name) => !isNamed(name)).map(({ local }) => local.name);
  const parts = specifiers.filter(isNamed).map(({ imported, local }) => `${imported?.name ?? ''}:${local.name}`);
  return [...whole, ...(parts.length === 0 ? [] : [`{${parts.join(',')}}`])]
    .map((target) => `const ${target}=${module};`)
    .join('');
}

/** @param edits none within another */
function applyEdits(edits: readonly Edit[], text: string): string {
  let done = 0;
  let result = '';
  for (const { start, end, text: instead } of edits.toSorted((one, other) => one.start - other.start)) {
    result += text.slice(done, start) + instead;
    done = end;
  }
  return result + text.slice(done);
}
