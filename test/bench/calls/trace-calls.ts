/**
 * Loaded into the sidecar before its program (`node --import`): every function of src/ that has a body reports each of its calls.
 * Functions, methods, accessors, constructors and arrow functions count. The parent process starts and ends a recording by IPC messages.
 */
import { registerHooks } from 'node:module';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { RecordedCalls, TracedFunction } from './recorded-calls.ts';

/** The global function that instrumented code calls. */
const RECORDER = '__recordCall';
const SOURCES = new URL('../../../src/', import.meta.url).href;

const functions: TracedFunction[] = [];
let calls: number[] | undefined;

(globalThis as Record<string, unknown>)[RECORDER] = (id: number): void => void calls?.push(id);

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(SOURCES) || !url.endsWith('.ts')) return nextLoad(url, context);
    const file = url.slice(SOURCES.length);
    return { format: 'module', source: instrument(file, readFileSync(fileURLToPath(url), 'utf8')), shortCircuit: true };
  },
});

process.on('message', (message) => {
  if (message === 'start') calls = [];
  if (message !== 'stop') return;
  const recorded: RecordedCalls = { functions, calls: calls ?? [] };
  calls = undefined;
  process.send?.(recorded);
});

/** The source as JavaScript, in which each function with a body begins with a report of its call. */
function instrument(file: string, source: string): string {
  const { outputText } = ts.transpileModule(source, {
    fileName: file,
    compilerOptions: { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
    transformers: { before: [(context) => (root) => visitFile(file, root, context)] },
  });
  return outputText;
}

function visitFile(file: string, root: ts.SourceFile, context: ts.TransformationContext): ts.SourceFile {
  const { factory } = context;
  const report = (node: ts.Node): ts.Expression => {
    const { line } = root.getLineAndCharacterOfPosition(node.getStart(root));
    const id = functions.push({ file, name: nameOf(node), line: line + 1 }) - 1;
    return factory.createCallExpression(factory.createIdentifier(RECORDER), undefined, [
      factory.createNumericLiteral(id),
    ]);
  };
  const visit = (node: ts.Node): ts.Node => {
    const reported = ts.isFunctionLike(node) && 'body' in node && node.body !== undefined ? report(node) : undefined;
    const inner = ts.visitEachChild(node, visit, context);
    return reported === undefined ? inner : withReport(factory, inner, reported);
  };
  return ts.visitEachChild(root, visit, context);
}

function withReport(factory: ts.NodeFactory, node: ts.Node, report: ts.Expression): ts.Node {
  if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) {
    const body = factory.createParenthesizedExpression(factory.createCommaListExpression([report, node.body]));
    const { modifiers, typeParameters, parameters, type, equalsGreaterThanToken } = node;
    return factory.updateArrowFunction(node, modifiers, typeParameters, parameters, type, equalsGreaterThanToken, body);
  }
  const body = (node as ts.FunctionLikeDeclaration).body as ts.Block;
  const statements = [factory.createExpressionStatement(report), ...body.statements];
  // A constructor of a derived class may call anything before super(), as long as it does not touch `this`.
  return replaceBody(factory, node, factory.updateBlock(body, statements));
}

function replaceBody(factory: ts.NodeFactory, node: ts.Node, body: ts.Block): ts.Node {
  if (ts.isFunctionDeclaration(node))
    return factory.updateFunctionDeclaration(
      ...([node, node.modifiers, node.asteriskToken, node.name, node.typeParameters] as const),
      ...([node.parameters, node.type, body] as const),
    );
  if (ts.isFunctionExpression(node))
    return factory.updateFunctionExpression(
      ...([node, node.modifiers, node.asteriskToken, node.name, node.typeParameters] as const),
      ...([node.parameters, node.type, body] as const),
    );
  if (ts.isArrowFunction(node))
    return factory.updateArrowFunction(
      ...([node, node.modifiers, node.typeParameters, node.parameters, node.type] as const),
      ...([node.equalsGreaterThanToken, body] as const),
    );
  if (ts.isMethodDeclaration(node))
    return factory.updateMethodDeclaration(
      ...([node, node.modifiers, node.asteriskToken, node.name, node.questionToken] as const),
      ...([node.typeParameters, node.parameters, node.type, body] as const),
    );
  if (ts.isConstructorDeclaration(node))
    return factory.updateConstructorDeclaration(node, node.modifiers, node.parameters, body);
  if (ts.isGetAccessorDeclaration(node))
    return factory.updateGetAccessorDeclaration(node, node.modifiers, node.name, node.parameters, node.type, body);
  if (ts.isSetAccessorDeclaration(node))
    return factory.updateSetAccessorDeclaration(node, node.modifiers, node.name, node.parameters, body);
  throw new Error(`a function of an unknown kind: ${ts.SyntaxKind[node.kind]}`);
}

function nameOf(node: ts.Node): string {
  const { name } = node as { name?: ts.Node };
  const own = name === undefined ? (ts.isConstructorDeclaration(node) ? 'constructor' : '') : textOf(name);
  const { parent } = node;
  if (ts.isClassLike(parent)) return `${parent.name?.text ?? 'class'}.${own}`;
  if (own === '' && (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent))) return textOf(parent.name);
  return own === '' ? '(anonymous)' : own;
}

function textOf(node: ts.Node): string {
  return ts.isIdentifier(node) || ts.isPrivateIdentifier(node) || ts.isStringLiteral(node) ? node.text : '(computed)';
}
