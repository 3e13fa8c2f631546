# Made by `make docs` from pyproject.toml. Do not edit.
class Nocturne < Formula
  include Language::Python::Virtualenv

  desc "Long-lived personal assistant that keeps every message, and sleeps"
  homepage "https://pypi.org/project/nocturne-assistant/"
  url "https://files.pythonhosted.org/packages/source/n/nocturne-assistant/nocturne_assistant-0.1.0.tar.gz"
  license "MIT"

  depends_on "python@3.13"

  def install
    virtualenv_create(libexec, "python3.13", without_pip: false)
    system libexec/"bin/python", "-m", "pip", "install", "--no-cache-dir", "#{buildpath}[matrix,discord,slack,mail,calendar,mcp,notify,tokens,vocabulary]"
    bin.install_symlink libexec/"bin/assistant"
    bin.install_symlink libexec/"bin/aihistory"
    man1.install Dir["docs/man/*.1"]
    (bash_completion/"assistant").write Utils.safe_popen_read(bin/"assistant", "completion", "bash", "--program", "assistant")
    (zsh_completion/"_assistant").write Utils.safe_popen_read(bin/"assistant", "completion", "zsh", "--program", "assistant")
    (fish_completion/"assistant.fish").write Utils.safe_popen_read(bin/"assistant", "completion", "fish", "--program", "assistant")
    (bash_completion/"aihistory").write Utils.safe_popen_read(bin/"assistant", "completion", "bash", "--program", "aihistory")
    (zsh_completion/"_aihistory").write Utils.safe_popen_read(bin/"assistant", "completion", "zsh", "--program", "aihistory")
    (fish_completion/"aihistory.fish").write Utils.safe_popen_read(bin/"assistant", "completion", "fish", "--program", "aihistory")
  end

  service do
    run [opt_bin/"assistant", "run"]
    keep_alive true
  end

  test do
    ENV["ASSISTANT_HOME"] = testpath/"home"
    assert_match version.to_s, shell_output("#{bin}/assistant --version")
    system bin/"assistant", "chat", "-m", "The boiler code is 4711."
    assert_match "4711", shell_output("#{bin}/assistant chat -m 'What is the boiler code?'")
  end
end
