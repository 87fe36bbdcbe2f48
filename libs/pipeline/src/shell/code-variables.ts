/** Which variables carry code: a value that comes from outside must not be put into one of them. */

/** Variables whose text some program takes as code, as a program's name, or as an arithmetic expression. */
const CODE_VARIABLES = new Set([
  'BASH_ENV',
  'ENV',
  'ZDOTDIR',
  'PROMPT_COMMAND',
  'PS0',
  'PS1',
  'PS2',
  'PS3',
  'PS4',
  'IFS',
  'PATH',
  'SHELL',
  'SHELLOPTS',
  'BASHOPTS',
  'LD_PRELOAD',
  'LD_LIBRARY_PATH',
  'LD_AUDIT',
  'DYLD_INSERT_LIBRARIES',
  'DYLD_LIBRARY_PATH',
  'NODE_OPTIONS',
  'NODE_PATH',
  'PYTHONPATH',
  'PYTHONSTARTUP',
  'PERL5OPT',
  'PERL5LIB',
  'RUBYOPT',
  'RUBYLIB',
  'JAVA_TOOL_OPTIONS',
  'MAKEFLAGS',
  'GIT_SSH',
  'GIT_SSH_COMMAND',
  'GIT_EXTERNAL_DIFF',
  'GIT_PAGER',
  'GIT_EDITOR',
  'GIT_ASKPASS',
  'GIT_PROXY_COMMAND',
  'GIT_CONFIG_PARAMETERS',
  'PAGER',
  'EDITOR',
  'VISUAL',
  'BROWSER',
  'SSH_ASKPASS',
  'TAR_OPTIONS',
  'RUSTC_WRAPPER',
  'RUSTFLAGS',
  'GOFLAGS',
  'CC',
  'CXX',
  'CFLAGS',
  'CXXFLAGS',
  'LDFLAGS',
  'LESSOPEN',
  'LESSCLOSE',
  'LESS',
  'MANPAGER',
  'RSYNC_RSH',
  'GZIP',
  'ZIPOPT',
  'NULLCMD',
  'READNULLCMD',
  'MAVEN_OPTS',
  'GRADLE_OPTS',
  'JAVA_OPTS',
  'JDK_JAVA_OPTIONS',
  '_JAVA_OPTIONS',
  'HOME',
  'XDG_CONFIG_HOME',
  'KUBECONFIG',
  'DOCKER_CONFIG',
  'MAILPATH',
  'CDPATH',
  'FPATH',
]);

/** Variables that are integers in some shell from the beginning: what is assigned to one is computed there. */
const INTEGER_VARIABLES = new Set([
  'RANDOM',
  'SRANDOM',
  'SECONDS',
  'OPTIND',
  'LINENO',
  'HISTCMD',
  'EPOCHSECONDS',
  'BASHPID',
  'BASH_ARGV0',
  'COLUMNS',
  'LINES',
  'HISTSIZE',
  'SAVEHIST',
  'UID',
  'EUID',
  'GID',
  'EGID',
  'PPID',
  'SHLVL',
  'TMOUT',
  'KEYTIMEOUT',
  'LISTMAX',
  'MAILCHECK',
  'FUNCNEST',
  'ERRNO',
  'TTYIDLE',
  'PERIOD',
  'LOGCHECK',
  'BAUD',
  'DIRSTACKSIZE',
]);

/** The same as `PATH` and its likes in zsh, and nothing of note in the others. */
const ZSH_VARIABLES = new Set(['path', 'fpath', 'cdpath', 'module_path', 'mailpath', 'status', 'argv']);

/** Families of such variables: those of dynamic linkers, of exported functions, and git's and npm's settings. */
const CODE_VARIABLE_FAMILIES =
  /^(LD_|DYLD_|BASH_FUNC_|GIT_(SSH|CONFIG|EXEC|TEMPLATE|SEQUENCE|TRACE)|NODE_|PERL|RUBY|PYTHON(PATH|STARTUP|HOME|WARNINGS|BREAKPOINT|INSPECT)|CARGO_(BUILD|TARGET)_|npm_config_|NPM_CONFIG_(SCRIPT|NODE|GIT|EDITOR|SHELL|VIEWER|USERCONFIG|GLOBALCONFIG|PREFIX))/;
const NODE_DATA = new Set(['NODE_ENV', 'NODE_VERSION', 'NODE_MAJOR', 'NODE_TAG', 'RUBY_VERSION', 'PERL_VERSION']);

/** Whether an expression may not be the value of this variable. */
export function isCodeVariable(name: string, shell?: string): boolean {
  return (
    (shell === 'zsh' && ZSH_VARIABLES.has(name)) ||
    CODE_VARIABLES.has(name) ||
    INTEGER_VARIABLES.has(name) ||
    (CODE_VARIABLE_FAMILIES.test(name) && !NODE_DATA.has(name))
  );
}
