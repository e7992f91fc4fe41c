/** Counts the lines of TypeScript files by kind, and the functions that only pass their parameters on. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** A line counts once: as code if any part of it is code, else as types, else as comments. */
export interface Size {
  files: number;
  code: number;
  /** Lines of interfaces and type aliases, with their members. */
  types: number;
  comments: number;
  blank: number;
  /** All lines. */
  lines: number;
  /** Named functions and methods whose only statement is a call with exactly their own parameters. */
  passThrough: number;
}

export const NONE: Size = { files: 0, code: 0, types: 0, comments: 0, blank: 0, lines: 0, passThrough: 0 };

/** The size of each folder below `root/src`, by its name; files that lie in src itself are one folder, `src`. */
export function countFolders(root: string): Map<string, Size> {
  const folders = new Map<string, Size>();
  for (const path of globSync('src/**/*.ts', { cwd: root })) {
    const [, folder = '', inFolder] = path.split(/[\\/]/);
    const name = inFolder === undefined ? 'src' : folder;
    const size = countFile(readFileSync(join(root, path), 'utf8'));
    folders.set(name, add(folders.get(name) ?? NONE, size));
  }
  return folders;
}

export function add(one: Size, other: Size): Size {
  const sum = { ...one };
  for (const key of Object.keys(sum) as (keyof Size)[]) sum[key] += other[key];
  return sum;
}

export function countFile(text: string): Size {
  const file = ts.createSourceFile('counted.ts', text, ts.ScriptTarget.Latest, true);
  const kinds = new Map<number, 'code' | 'types'>();
  let passThrough = 0;
  const lineAt = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node, kind: 'code' | 'types'): void => {
    if (isPassThrough(node)) passThrough += 1;
    const ownKind = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) ? 'types' : kind;
    const children = node.getChildren(file).filter((child) => !ts.isJSDoc(child));
    for (const child of children) visit(child, ownKind);
    if (children.length > 0 || node.kind === ts.SyntaxKind.EndOfFileToken || node.getWidth(file) === 0) return;
    for (let line = lineAt(node.getStart(file)); line <= lineAt(node.getEnd()); line += 1)
      if (kinds.get(line) !== 'code') kinds.set(line, ownKind);
  };
  visit(file, 'code');

  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const size: Size = { files: 1, code: 0, types: 0, comments: 0, blank: 0, lines: lines.length, passThrough };
  for (const [index, line] of lines.entries())
    size[kinds.get(index) ?? (line.trim() === '' ? 'blank' : 'comments')] += 1;
  return size;
}

function isPassThrough(node: ts.Node): boolean {
  const isNamedArrow = ts.isArrowFunction(node) && 'name' in node.parent;
  if (!ts.isFunctionDeclaration(node) && !ts.isMethodDeclaration(node) && !isNamedArrow) return false;
  const call = onlyExpression(node.body);
  if (call === undefined || !ts.isCallExpression(call) || !isPath(call.expression)) return false;
  const parameters = node.parameters.map(({ name, dotDotDotToken }) => (dotDotDotToken ? '...' : '') + name.getText());
  const passed = call.arguments.map((argument) => argument.getText());
  return parameters.length === passed.length && parameters.every((name, index) => name === passed[index]);
}

/** The expression of a body that has one statement, without `await`. */
function onlyExpression(body: ts.ConciseBody | undefined): ts.Expression | undefined {
  let expression = body as ts.Expression | undefined;
  if (body !== undefined && ts.isBlock(body)) {
    const [only, second] = body.statements;
    if (only === undefined || second !== undefined) return undefined;
    if (!ts.isReturnStatement(only) && !ts.isExpressionStatement(only)) return undefined;
    expression = only.expression;
  }
  return expression !== undefined && ts.isAwaitExpression(expression) ? expression.expression : expression;
}

/** A name or a path of names, such as `this.#pool.close`: nothing is called or computed on the way. */
function isPath(node: ts.Expression): boolean {
  if (ts.isPropertyAccessExpression(node)) return isPath(node.expression);
  return ts.isIdentifier(node) || node.kind === ts.SyntaxKind.ThisKeyword;
}
