/** An ESLint rule: a declared name of src/ or test/ holds no word that is listed as replaced. */
import type { Rule } from 'eslint';
import { REFUSED_WORDS } from './glossary.ts';

interface Declared {
  readonly node: Rule.Node;
  readonly name: string;
}

export const refusedWords: Rule.RuleModule = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: { refused: '"{{name}}": write {{instead}} for "{{word}}"' },
  },
  create(context) {
    const folder = /\/(?:src|test)\/([^/]+)\//.exec(context.filename.replaceAll('\\', '/'))?.[1];
    const check = ({ node, name }: Declared): void => {
      const words = new Set(wordsOf(name));
      const refused = REFUSED_WORDS.find(
        ({ word, folders }) => words.has(word) && (folders === undefined || folders.includes(folder ?? '')),
      );
      if (refused !== undefined)
        context.report({ node, messageId: 'refused', data: { name, word: refused.word, instead: refused.instead } });
    };
    const checkIdentifier = (node: unknown): void => {
      const { type, name } = node as { type?: string; name?: unknown };
      if ((type === 'Identifier' || type === 'PrivateIdentifier') && typeof name === 'string')
        check({ node: node as Rule.Node, name });
    };
    const checkNamed = (node: object): void => checkIdentifier((node as { id?: unknown }).id);
    const checkKeyed = (node: object): void => {
      const { key, computed } = node as { key?: unknown; computed?: boolean };
      if (computed !== true) checkIdentifier(key);
    };
    return {
      ClassDeclaration: checkNamed,
      TSInterfaceDeclaration: checkNamed,
      TSTypeAliasDeclaration: checkNamed,
      PropertyDefinition: checkKeyed,
      MethodDefinition: checkKeyed,
      TSPropertySignature: checkKeyed,
      TSMethodSignature: checkKeyed,
      'VariableDeclarator, CatchClause, :function'(node: Rule.Node) {
        // Names of functions, variables, parameters and caught errors, also in patterns.
        for (const variable of context.sourceCode.getDeclaredVariables(node))
          for (const each of variable.identifiers) checkIdentifier(each);
      },
    };
  },
};

/** The words of a name in camel case or capitals, in lower case. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z]+|\s/)
    .map((word) => word.toLowerCase())
    .filter((word) => word !== '');
}
