//! A report in a real browser: headless Chromium through its debugging protocol.
//!
//! Uses the Chromium that is there; on Debian as root it installs one. ESSCHER_NO_BROWSER=1 leaves the test out.

mod common;

use common::{succeed, write_experiment};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

/// A page under the debugging protocol, with everything that it said and asked for.
struct Page {
    browser: Child,
    socket: WebSocket<TcpStream>,
    last: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let find = || {
        names.into_iter().find(|name| {
            let answer =
                Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            answer.is_ok_and(|status| status.success())
        })
    };
    find().or_else(|| {
        println!("no Chromium here: installing Debian's");
        for arguments in [vec!["update", "-qq"], vec!["install", "-y", "-qq", "chromium"]] {
            let _ = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        }
        find()
    })
}

impl Page {
    fn open(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let browser = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-port=0",
                "--window-size=1200,900",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Chromium starts");
        let port_file = profile.path().join("DevToolsActivePort");
        let began = Instant::now();
        let port = loop {
            let text = std::fs::read_to_string(&port_file).unwrap_or_default();
            if let Some(port) = text.lines().next().and_then(|line| line.parse::<u16>().ok()) {
                break port;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "Chromium opens its debugging port");
            std::thread::sleep(Duration::from_millis(50));
        };
        let target = Self::target(port);
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (socket, _) = tungstenite::client(target, stream).expect("the debugging protocol answers");
        Page { browser, socket, last: 0, events: Vec::new(), _profile: profile }
    }

    /// The address of the page's debugging socket.
    fn target(port: u16) -> String {
        use std::io::{Read, Write};
        let began = Instant::now();
        loop {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            write!(stream, "GET /json HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let answer = String::from_utf8_lossy(&answer);
            let list = answer.find('[').map(|start| &answer[start..]).unwrap_or("[]");
            let targets: Value = serde_json::from_str(list).unwrap_or_default();
            let page = targets.as_array().into_iter().flatten().find(|target| target["type"] == "page");
            if let Some(address) = page.and_then(|page| page["webSocketDebuggerUrl"].as_str()) {
                return address.to_string();
            }
            assert!(began.elapsed() < Duration::from_secs(60), "Chromium has a page");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// One call of the protocol; events that come meanwhile are kept.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let request = json!({ "id": self.last, "method": method, "params": parameters });
        self.socket.send(Message::text(request.to_string())).unwrap();
        loop {
            let message = self.socket.read().expect("Chromium answers");
            let Ok(text) = message.to_text() else { continue };
            let answer: Value = serde_json::from_str(text).unwrap_or_default();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(began.elapsed() < Duration::from_secs(60), "never true: {expression}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn events(&self, method: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["method"] == method).map(|event| &event["params"]).collect()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

/// Opens a report and checks what a reader sees: figures drawn, formulas set, hover, both themes, no error, no request.
fn read_like_a_person(page: &mut Page, report: &Path) {
    page.events.clear();
    for domain in ["Page", "Runtime", "Log", "Network"] {
        page.call(&format!("{domain}.enable"), json!({}));
    }
    page.call("Page.navigate", json!({ "url": format!("file://{}", report.display()) }));
    page.wait("document.readyState === 'complete'");
    page.wait("document.querySelectorAll('figure').length > 0");
    // What is folded is drawn when it is unfolded.
    page.wait("[...document.querySelectorAll('figure')].every(figure => figure.closest('details:not([open])') || figure.classList.contains('drawn'))");
    page.value("document.querySelectorAll('main section details').forEach(fold => fold.open = true), 0");
    page.wait("[...document.querySelectorAll('figure')].every(figure => figure.classList.contains('drawn'))");
    page.wait("[...document.querySelectorAll('figure')].every(figure => figure.querySelector('.chart svg path, .chart canvas, .chart .tile'))");
    let drawn = page.value(
        "[...document.querySelectorAll('figure')].map(figure => figure.querySelectorAll('.chart svg path, .chart canvas, .chart .tile').length)",
    );
    let drawn: Vec<u64> = serde_json::from_value(drawn).unwrap();
    assert!(drawn.iter().all(|marks| *marks > 0), "every figure has marks: {drawn:?}");
    let unset = page.value(
        "[...document.querySelectorAll('.formula')].filter(f => !f.querySelector('.katex') || f.querySelector('.katex-error')).map(f => f.textContent)",
    );
    assert_eq!(unset, json!([]), "every formula is set");
    let broken = page.value("document.body.innerText.match(/NaN|undefined|Infinity|\\[object/g)");
    assert!(broken.is_null(), "{broken}");
    let wide = page.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert!(wide.as_f64().unwrap() <= 0.0, "the page scrolls sideways by {wide}");

    // Hover: from left to right over the first figure until a tooltip shows.
    page.value(
        "document.querySelector('figure:not(.cells):not(.mosaic) .chart').scrollIntoView({ block: 'center', behavior: 'instant' }), 0",
    );
    let place = page.value(
        "(r => [r.left, r.top, r.width, r.height])(document.querySelector('figure:not(.cells):not(.mosaic) .chart').getBoundingClientRect())",
    );
    let place: Vec<f64> = serde_json::from_value(place).unwrap();
    let mut told = String::new();
    'hover: for across in 2..39 {
        for down in 1..12 {
            let (x, y) = (
                place[0] + place[2] * f64::from(across) / 40.0,
                place[1] + place[3] * f64::from(down) / 12.0,
            );
            page.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
            let shown =
                page.value("(t => t && t.classList.contains('shown') ? t.innerText : '')(document.querySelector('.tooltip'))");
            if let Some(text) = shown.as_str().filter(|text| !text.is_empty()) {
                told = text.to_string();
                break 'hover;
            }
        }
    }
    assert!(told.lines().count() >= 2, "hovering tells series and values, it told {told:?}");
    assert!(told.chars().any(|letter| letter.is_ascii_digit()), "{told:?}");

    // The other theme draws the figures again.
    page.value("document.querySelector('button.theme').click(), 0");
    page.wait("[...document.querySelectorAll('figure')].every(figure => figure.querySelector('.chart svg, .chart canvas, .chart .tile'))");

    // A download has the data.
    page.value(
        "window.saved = null, URL.createObjectURL = blob => (blob.text().then(text => window.saved = text), 'blob:none'), \
         document.querySelector('figure:not(.cells):not(.mosaic) button[data-kind=csv]').click(), 0",
    );
    page.wait("window.saved !== null");
    let saved = page.value("window.saved");
    assert!(
        saved.as_str().is_some_and(|text| text.starts_with("series,") && text.lines().count() > 2),
        "{saved}"
    );

    let errors: Vec<_> = page
        .events("Runtime.consoleAPICalled")
        .into_iter()
        .filter(|event| event["type"] == "error" || event["type"] == "warning")
        .chain(page.events("Runtime.exceptionThrown"))
        .chain(page.events("Log.entryAdded").into_iter().filter(|event| event["entry"]["level"] == "error"))
        // The blob that the test itself replaced.
        .filter(|event| !event.to_string().contains("blob:none"))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let requests: Vec<_> = page
        .events("Network.requestWillBeSent")
        .into_iter()
        .filter_map(|event| event["request"]["url"].as_str())
        .filter(|url| !url.starts_with("data:") && !url.starts_with("blob:"))
        .collect();
    let own = format!("file://{}", report.display());
    assert!(requests.iter().all(|url| **url == own), "no request leaves the page: {requests:?}");
}

#[test]
fn reports_open_in_a_real_browser_without_errors_or_requests() {
    if std::env::var_os("ESSCHER_NO_BROWSER").is_some() {
        println!("not run: ESSCHER_NO_BROWSER is set");
        return;
    }
    let program =
        chromium().expect("Chromium is needed: install it, or set ESSCHER_NO_BROWSER=1 to leave this out");
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write_experiment(folder);
    succeed(folder, &["run", "paths.toml", "--quiet"]);
    succeed(folder, &["run", "paths.toml", "--quiet", "--seed", "9", "--out", "other"]);
    succeed(folder, &["report", "runs/paths", "other/paths", "--out", "comparison.html"]);
    // One claim by itself, and the reproduction's report on it.
    let output = common::run(folder, &["reproduce", "--only", "gaussian-lemma", "--quiet"]);
    assert_eq!(output.status.code(), Some(0));
    let mut page = Page::open(program);
    for report in [
        "runs/paths/report.html",
        "comparison.html",
        "runs/reproduce/gaussian-lemma/report.html",
        "runs/reproduce/report.html",
    ] {
        read_like_a_person(&mut page, &folder.join(report));
        println!("{report}: read");
    }
}
